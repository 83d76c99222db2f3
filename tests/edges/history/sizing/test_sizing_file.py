import stat
from dataclasses import replace

import pytest

from osbench.common.errors import OsbenchError
from osbench.common.task import Named, Subtask, Task, Workload
from osbench.edges.history.sizing.sizing_file import load_sizing, save_sizing, task_digest

WORKLOAD = Workload(
    place="subtasks[0]",
    position=0,
    scenario="Shop.buy",
    args={"item": 3},
    runner=Named(name="rps", config={"rps": 5, "times": 50}),
)
TASK = Task(title="Shop", subtasks=(Subtask(title="one", workloads=(WORKLOAD,)),))


def digest(**changes):
    changed = replace(WORKLOAD, **changes)
    return task_digest(replace(TASK, subtasks=(Subtask(title="one", workloads=(changed,)),)))


def test_a_task_is_the_same_wherever_it_lies_and_whatever_it_is_called():
    moved = replace(TASK, title="Till", source="/elsewhere/task.yaml", tags=("nightly",))

    assert task_digest(moved) == task_digest(TASK)
    assert digest(sla=(Named(name="failure_rate"),), named="Buy") == task_digest(TASK)


@pytest.mark.parametrize(
    "changes",
    [
        {"args": {"item": 4}},
        {"scenario": "Shop.look"},
        {"runner": Named(name="rps", config={"rps": 6, "times": 50})},
        {"think": {"min": 1}},
    ],
)
def test_another_load_is_another_task(changes):
    assert digest(**changes) != task_digest(TASK)


def test_what_was_said_is_read_again_by_its_owner_alone(tmp_path):
    save_sizing(str(tmp_path), "abc", {"format": 1, "workloads": []})

    assert load_sizing(str(tmp_path), "abc") == {"format": 1, "workloads": []}
    assert load_sizing(str(tmp_path), "abd") is None
    mode = (tmp_path / "plans" / "abc.json").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": 2, "workloads": []}', '{"format": 1, "workloads": 3}']
)
def test_a_file_that_is_no_plan_is_none(tmp_path, text):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "abc.json").write_text(text)

    assert load_sizing(str(tmp_path), "abc") is None


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "plans").write_text("in the way")

    with pytest.raises(OsbenchError, match=r"cannot write .*/plans/abc\.json"):
        save_sizing(str(tmp_path), "abc", {})
