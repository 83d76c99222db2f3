"""Contexts of a run whose coordinator was killed, taken up by another one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import ContextError, StoreLost
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named, Workload
from osbench.coordinator.plugins.contexts.context_stack import ContextStack
from osbench.coordinator.plugins.contexts.state_store import ContextStateStore, Entry

PLUGIN = """
from osbench.plugin import context, scenario

LOG = []


class Made(context.Context):
    def setup(self):
        LOG.append(f"setup {self.NAME}")
        self.made[self.NAME] = len(LOG)

    def cleanup(self):
        LOG.append(f"cleanup {self.NAME} {self.surroundings.crashed}")
        if self.config.get("stays"):
            raise OSError("it stays")


class One(Made):
    NAME = "one"
    ORDER = 100


class Two(Made):
    NAME = "two"
    ORDER = 200


@scenario.configure(name="Plain.run")
class Plain(scenario.Scenario):
    def run(self, size):
        pass
"""


class Killed(BaseException):
    """Nothing is done any more."""


@pytest.fixture
def plugins(tmp_path: Path) -> Plugins:
    path = tmp_path / "plugins" / "plain.py"
    path.parent.mkdir()
    path.write_text(PLUGIN)
    return Plugins([str(path)])


@pytest.fixture
def log(plugins: Plugins) -> list[str]:
    found: list[str] = __import__(plugins.get("context", "one").__module__).LOG
    return found


@pytest.fixture
def opened(tmp_path: Path, plugins: Plugins) -> Callable[[], tuple[ContextStateStore, Any]]:
    """Open the run as a coordinator does: the first one, or a later one."""
    folder = tmp_path / "data" / "runs" / "r1"
    folder.mkdir(parents=True)

    def coordinator() -> tuple[ContextStateStore, ContextStack]:
        store = ContextStateStore.load(folder, folder.parents[1])
        return store, ContextStack(store, plugins)

    return coordinator


def workload(**configs: Any) -> Workload:
    return Workload(
        place="subtasks[0]",
        position=0,
        scenario="Plain.run",
        args={"size": 3},
        runner=Named(name="serial"),
        contexts=tuple(Named(name=name, config=config) for name, config in configs.items()),
    )


WORKLOAD = workload(one={}, two={})


def around(contexts: ContextStack, one: Workload = WORKLOAD) -> Any:
    return contexts.around(
        0,
        one,
        check=lambda: None,
        poll=lambda _: None,
        kept=lambda error: isinstance(error, Killed | StoreLost),
    )


@contextlib.contextmanager
def killed() -> Iterator[None]:
    with pytest.raises(Killed):
        yield


def test_contexts_that_were_set_up_are_taken_as_they_are_and_undone_once(opened, log):
    _, first = opened()
    with killed(), around(first) as made:
        given = first.ready(0, WORKLOAD, made, lambda _: None)
        raise Killed

    _, second = opened()
    with around(second) as made_again:
        given_again = second.ready(0, WORKLOAD, made_again, lambda: None)

    assert made_again == made == {"one": 1, "two": 2}
    assert given_again == given == ({"size": 3}, made)
    assert log == ["setup one", "setup two", "cleanup two False", "cleanup one False"]
    (record, _) = second.history.of(0)
    assert record.setup is not None
    assert record.cleanup is not None
    assert record.setup.started_at < record.cleanup.started_at


def test_contexts_that_were_set_up_in_part_are_undone_and_set_up_again(opened, log):
    store, _ = opened()
    store.add(Entry(workload=0, name="one", config={}, made={"one": 7}))

    again, contexts = opened()
    with around(contexts) as made:
        names = [entry.name for entry in again.of(0)]

    assert log[:3] == ["cleanup one True", "setup one", "setup two"]
    assert names == ["one", "two"]
    assert made["one"] != 7


def test_nothing_is_set_up_where_the_first_part_stays(opened, log):
    store, _ = opened()
    store.add(Entry(workload=0, name="one", config={"stays": True}))

    again, contexts = opened()
    with pytest.raises(ContextError, match="cannot be set up again"), around(contexts):
        pytest.fail("there is a load")

    assert log == ["cleanup one True"]
    assert contexts.left == ["context one cannot be undone: OSError: it stays"]
    assert [entry.name for entry in again.of(0)] == ["one"]


def test_a_cleanup_that_was_cut_off_is_ended(opened, log):
    store, first = opened()
    with killed(), around(first) as made:
        first.ready(0, WORKLOAD, made, lambda _: None)
        raise Killed
    log.clear()
    # killed between two contexts
    store.prepared[0].over = True
    store.save_prepared()
    store.remove(store.entries[-1])

    again, second = opened()
    assert second.is_over(0)
    second.finish(0, poll=lambda _: None)

    assert log == ["cleanup one False"]
    assert again.entries == []


def test_what_a_run_without_redis_needs_to_go_on_is_kept(opened, log):
    _, first = opened()
    with pytest.raises(StoreLost), around(first) as made:
        first.ready(0, WORKLOAD, made, lambda _: None)
        raise StoreLost("away for 60 s")

    store, second = opened()

    assert [entry.name for entry in store.of(0)] == ["one", "two"]
    assert not second.is_over(0)
    assert log == ["setup one", "setup two"]


def test_what_workers_get_is_encrypted(opened, tmp_path):
    _, first = opened()
    secret = workload(one={}, two={})
    with killed(), around(first, secret) as made:
        first.ready(0, secret, {**made, "password": "planted"}, lambda: None)
        raise Killed

    content = (tmp_path / "data" / "runs" / "r1" / "prepared").read_bytes()

    assert b"planted" not in content
    assert b"size" not in content
