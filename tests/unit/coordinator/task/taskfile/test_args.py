"""Task arguments come from files and from the command line; later ones win."""

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.task.taskfile import read_args
from osbench.coordinator.task.taskfile.args import TaskArguments


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("", {}),
        ('{"times": 3, "image": "x=y"}', {"times": 3, "image": "x=y"}),
        ("times: 3", {"times": 3}),
        ("times=3", {"times": 3}),
        ("times=3,name=a b,on=true,half=0.5", {"times": 3, "name": "a b", "on": True, "half": 0.5}),
        ("url=http://host:80/?q=1", {"url": "http://host:80/?q=1"}),
        ("name=", {"name": ""}),
        ("pattern=[a-z", {"pattern": "[a-z"}),
    ],
)
def test_arguments_as_text(text, args):
    assert read_args([text]).values == args


def test_later_ones_win_and_texts_win_over_files(tmp_path):
    one, two = tmp_path / "one.yaml", tmp_path / "two.json"
    one.write_text("a: 1\nb: 1\nc: 1\nd: 1\n")
    two.write_text('{"b": 2, "c": 2, "d": 2}')

    args = read_args(["c=3,d=3", "d: 4"], [str(one), str(two)]).values

    assert args == {"a": 1, "b": 2, "c": 3, "d": 4}


@pytest.mark.parametrize("text", ["times", "[1]", "3", "a: 1\na: 2", "a: [", "a b=1"])
def test_texts_that_are_no_arguments(text):
    with pytest.raises(UsageError, match="--task-args"):
        read_args([text])


@pytest.mark.parametrize("content", [b"[1]", b"a: [", b"\xff"])
def test_files_that_are_no_arguments(tmp_path, content):
    path = tmp_path / "args.yaml"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=r"--task-args-file .*args\.yaml: "):
        read_args(files=[str(path)])


def test_a_file_of_arguments_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"absent\.yaml: cannot read it: No such file"):
        read_args(files=[str(tmp_path / "absent.yaml")])


GIVEN = TaskArguments(
    values={"times": 1, "rate": 2, "old": 3},
    given=frozenset(("times", "rate")),
    files={"old": "args.yaml"},
)


def test_an_argument_that_the_task_does_not_have_is_refused_or_of_a_file_warned_of():
    with pytest.raises(UsageError, match=r"no argument 'rate'; did you mean rates\?"):
        GIVEN.refuse_unused([frozenset(("times", "rates"))])
    with pytest.raises(UsageError, match=r"no argument 'rate'; its arguments are times, users"):
        GIVEN.refuse_unused([frozenset(("times", "users"))])
    with pytest.raises(UsageError, match=r"no argument 'rate'; it has none"):
        GIVEN.refuse_unused([frozenset()])

    (warning,) = GIVEN.refuse_unused([frozenset(("times", "rate"))])

    assert warning.startswith("--task-args-file args.yaml: the task has no argument 'old'")


def test_what_one_of_several_tasks_has_is_used():
    assert GIVEN.refuse_unused([frozenset(("times",)), frozenset(("rate", "old"))]) == []


def test_nothing_is_refused_where_the_names_of_a_template_are_not_known():
    assert GIVEN.refuse_unused([frozenset(), None]) == []
