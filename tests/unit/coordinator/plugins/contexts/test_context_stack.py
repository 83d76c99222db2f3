"""Contexts: set up in order, undone in reverse whatever happens, also by another process."""

import errno
import os
import threading
from pathlib import Path

import pytest

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ConfigError, ContextError, OsbenchError, TaskError
from osbench.common.files.encrypted_file import EncryptedFile
from osbench.common.plugin import cloud_platform
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named, Workload
from osbench.coordinator.plugins.contexts import context_stack
from osbench.coordinator.plugins.contexts.context_stack import ContextStack, contexts_of, undo
from osbench.coordinator.plugins.contexts.state_store import (
    FILE,
    KEY,
    ContextStateStore,
    Entry,
    PreparedWorkload,
)
from osbench.coordinator.task.taskfile import checked_task

PLUGIN = """
import threading

from osbench.plugin import context, scenario

LOG = []
NEVER = threading.Event()


class Noted(context.Context):
    def setup(self):
        LOG.append(f"setup {self.NAME} {self.surroundings.context}")
        self.made[self.NAME] = f"made by {self.NAME}"
        if self.config.get("fail") == "no end of setup":
            NEVER.wait()
        if self.config.get("fail") == "setup":
            raise RuntimeError("no quota\\nand a second line")

    def cleanup(self):
        LOG.append(f"cleanup {self.NAME} {self.made}")
        if self.config.get("fail") == "no end of cleanup":
            NEVER.wait()
        if self.config.get("fail") == "cleanup":
            raise OSError()


class Searching(Noted):
    NAME = "searching"

    def __init__(self, config, *more):
        super().__init__(config, *more)
        if config.get("fail") == "__init__":
            raise KeyError("odd\\ud800")

    def in_error(self, patient):
        while patient():
            pass
        if self.config.get("fail") == "search":
            raise KeyError("odd\\ud800")
        return context.ErrorSearchResult(waited_s=float(len(self.made)))


class First(Noted):
    NAME = "first"
    ORDER = 100


class Second(Noted):
    NAME = "second"
    ORDER = 200
    HIDDEN = True
    CONFIG_SCHEMA = {"type": "object", "properties": {"fail": {"type": "string"}}}


class Third(Noted):
    NAME = "third"
    ORDER = 300


class Unstorable(Noted):
    NAME = "unstorable"
    ORDER = 50

    def setup(self):
        # copied nor packed
        self.made["file"] = threading.Lock()


@scenario.configure(name="Mine.run", context={"second": {"fail": "no"}})
class Mine(scenario.Scenario):
    def run(self):
        pass


@scenario.configure(name="Bad.run", context={"second": {"fail": 3}})
class Bad(scenario.Scenario):
    def run(self):
        pass
"""


@pytest.fixture
def plugins(tmp_path):
    path = tmp_path / "plugins" / "mine.py"
    path.parent.mkdir()
    path.write_text(PLUGIN)
    return Plugins([str(path)])


@pytest.fixture
def log(plugins):
    return __import__(plugins.get("context", "first").__module__).LOG


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data" / "runs" / "r1"
    path.mkdir(parents=True)
    return path


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(context_stack, "POLL_S", 0.01)


@pytest.fixture
def objects(folder):
    return ContextStateStore(folder, folder.parents[1], "r1", None)


def workload(scenario="Mine.run", **configs):
    return Workload(
        place="subtasks[0]",
        position=0,
        scenario=scenario,
        args={},
        runner=Named(name="serial"),
        contexts=tuple(Named(name=name, config=config) for name, config in configs.items()),
    )


def around(objects, plugins, one, check=lambda: None):
    contexts = ContextStack(objects, plugins)
    return contexts, contexts.around(0, one, check=check, poll=lambda _: None)


def test_contexts_run_in_their_order_and_back(objects, plugins, log, folder):
    contexts, manager = around(objects, plugins, workload(third={}, first={}))

    with manager as made:
        kept = Path(folder / FILE).read_bytes()
        log.append("load")

    assert made == {name: f"made by {name}" for name in ("first", "second", "third")}
    assert log == [
        "setup first {}",
        "setup second {'first': 'made by first'}",
        "setup third {'first': 'made by first', 'second': 'made by second'}",
        "load",
        "cleanup third {'third': 'made by third'}",
        "cleanup second {'second': 'made by second'}",
        "cleanup first {'first': 'made by first'}",
    ]
    assert b"made by" not in kept
    assert contexts.left == []
    assert list(folder.iterdir()) == []


def test_a_failing_setup_undoes_all_its_own_part_included(objects, plugins, log, folder):
    _, manager = around(objects, plugins, workload(first={}, third={}, second={"fail": "setup"}))

    with pytest.raises(ContextError) as caught, manager:
        log.append("load")

    assert str(caught.value) == (
        "context second cannot be set up: RuntimeError: no quota; check contexts.second of the task"
    )
    assert [line.partition(" {")[0] for line in log] == [
        "setup first",
        "setup second",
        "cleanup second",
        "cleanup first",
    ]
    assert list(folder.iterdir()) == []


def test_the_load_failing_or_a_wish_to_stop_undoes_all(objects, plugins, log):
    _, loading = around(objects, plugins, workload(first={}))
    with pytest.raises(ZeroDivisionError), loading:
        raise ZeroDivisionError

    def stopping():
        if "asked to stop" in log:
            raise KeyboardInterrupt
        log.append("asked to stop")

    _, stopped = around(objects, plugins, workload(first={}), stopping)
    del log[:]
    with pytest.raises(KeyboardInterrupt), stopped:
        log.append("load")

    assert log == [
        "asked to stop",
        "setup first {}",
        "cleanup first {'first': 'made by first'}",
    ]


def test_what_cannot_be_undone_is_reported_and_left_to_another_process(
    objects, plugins, log, folder
):
    contexts, manager = around(
        objects, plugins, workload(first={}, second={"fail": "cleanup"}, third={})
    )

    with manager:
        pass
    del log[:]
    found = ContextStateStore.load(folder, folder.parents[1])
    again = undo(found, plugins)

    reported = [
        "context second cannot be undone: OSError",
        "context first is kept for context second",
    ]
    assert contexts.left == again == reported
    history = {record.name: record for record in contexts.history.of(0)}
    assert list(history) == ["first", "second", "third"]
    assert history["second"].setup.error is None
    assert history["second"].cleanup.error.etype == "OSError"
    assert history["second"].cleanup.started_at >= history["third"].cleanup.finished_at
    assert history["first"].cleanup is None
    assert log == ["cleanup second {'second': 'made by second'}"]
    left = ContextStateStore.load(folder, folder.parents[1]).entries
    assert [entry.name for entry in left] == ["first", "second"]


def test_a_file_that_cannot_be_removed_is_an_error_of_the_context(objects, monkeypatch):
    entry = Entry(name="first", config={}, workload=0)
    objects.add(entry)

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ContextError, match=r"cannot remove .*: Permission denied; remove it"):
        objects.remove(entry)


ADMIN = {"username": "a", "password": "p", "project_name": "x"}
CLOUD = {"openstack": {"auth_url": "http://cloud/v3", "admin": ADMIN}}


class Cloud:
    """A cloud with settings of this host."""

    def __init__(self, timeout):
        self._timeout = timeout

    def context(self):
        if self._timeout is None:
            raise ConfigError("rally.conf is not readable")
        return {"timeout": self._timeout}


@pytest.mark.parametrize(
    ("deployment", "given"), [(CLOUD, {"timeout": 4}), ({"osbench": {}}, {}), (None, {})]
)
def test_workers_get_the_settings_of_this_host_for_a_cloud(
    folder, plugins, monkeypatch, deployment, given
):
    monkeypatch.setattr(cloud_platform, "load_object", lambda *_: lambda: Cloud(4))
    record = None if deployment is None else Deployment.from_spec("c", deployment)
    store = ContextStateStore(folder, folder.parents[1], "r1", record)
    contexts = ContextStack(store, plugins)

    _, context = contexts.ready(0, workload("Dummy.dummy@native"), {"made": 1}, lambda _: None)

    assert context == {"made": 1, **given}


def test_settings_that_cannot_be_read_end_the_preparation(folder, plugins, monkeypatch):
    monkeypatch.setattr(cloud_platform, "load_object", lambda *_: lambda: Cloud(None))
    record = Deployment.from_spec("c", CLOUD)
    contexts = ContextStack(ContextStateStore(folder, folder.parents[1], "r1", record), plugins)

    with pytest.raises(ContextError, match="not readable"):
        contexts.ready(0, workload("Dummy.dummy@native"), {}, lambda _: None)


def test_all_is_undone_although_the_disk_is_full(objects, plugins, log, monkeypatch):
    def full(*_):
        raise OsbenchError("contexts cannot be written: No space left on device")

    contexts, manager = around(objects, plugins, workload(third={}, first={}))
    with manager as made:
        contexts.ready(0, workload(third={}, first={}), made, lambda _: None)
        monkeypatch.setattr(EncryptedFile, "write", full)

    assert [line.split()[:2] for line in log[3:]] == [
        ["cleanup", "third"],
        ["cleanup", "second"],
        ["cleanup", "first"],
    ]
    assert contexts.left == [
        f"context {name} is undone, and that cannot be noted: contexts cannot be written: "
        "No space left on device"
        for name in ("third", "second")
    ]


def test_other_workloads_are_undone_whatever_one_keeps(objects, plugins, log):
    for number, fail in enumerate(["no", "cleanup", "no"]):
        objects.add(Entry(workload=number, name="first", config={}))
        objects.add(Entry(workload=number, name="second", config={"fail": fail}, after=["first"]))

    problems = undo(objects, plugins)

    assert len(problems) == 2
    assert [(entry.workload, entry.name) for entry in objects.entries] == [
        (1, "first"),
        (1, "second"),
    ]


def test_a_context_is_not_undone_as_another_user(objects, plugins, log):
    objects.add(Entry(workload=0, name="second", config={}, after=["first"]))
    # another workload's is no help
    objects.add(Entry(workload=1, name="first", config={}))

    (problem,) = undo(objects, plugins)

    assert "context second cannot be undone: it needs the result of first" in problem
    assert log == ["cleanup first {}"]


def test_a_coordinator_that_died_leaves_what_cleanup_needs(plugins, log, folder):
    deployment = Deployment.from_spec(
        "shop", {"osbench": {"services": {"shop": "http://shop.example"}}}
    )
    objects = ContextStateStore(folder, folder.parents[1], "r1", deployment)
    pid = os.fork()
    if pid == 0:
        _, manager = around(objects, plugins, workload(first={}))
        with manager:
            os._exit(9)

    os.waitpid(pid, 0)
    found = ContextStateStore.load(folder, folder.parents[1])
    problems = undo(found, plugins)

    assert [len(found.entries), problems] == [0, []]
    assert found.deployment is not None and "shop" in found.deployment.services
    assert log == [
        "cleanup second {'second': 'made by second'}",
        "cleanup first {'first': 'made by first'}",
    ]
    assert list(folder.iterdir()) == []


def test_secrets_of_addresses_are_not_reported(objects, plugins, monkeypatch):
    def failing(*_):
        raise OSError("http://ann:swordfish@mirror.example/disk?token=sesame is not there")

    monkeypatch.setattr(plugins.get("context", "first"), "setup", failing)
    monkeypatch.setattr(plugins.get("context", "first"), "cleanup", failing)
    contexts, manager = around(objects, plugins, workload(first={}))

    with pytest.raises(ContextError) as caught, manager:
        pass

    for said in (str(caught.value), *contexts.left):
        assert "http://***@mirror.example/disk?token=*** is not there" in said


def test_what_cannot_be_stored_is_a_failing_setup(objects, plugins, log):
    _, manager = around(objects, plugins, workload(unstorable={}))

    said = r"context unstorable: made\['file'\] cannot be stored: it is or holds a lock"
    with pytest.raises(ContextError, match=said), manager:
        pass

    assert log == ["cleanup unstorable {}"]


def test_files_of_contexts_are_private_and_need_their_key(objects, plugins, folder):
    data = folder.parents[1]
    _, manager = around(objects, plugins, workload(first={}))

    with manager:
        modes = [(data / KEY).stat().st_mode & 0o777, (folder / FILE).stat().st_mode & 0o777]
        (data / KEY).rename(data / "elsewhere")
        with pytest.raises(ContextError, match="cannot be decrypted"):
            ContextStateStore.load(folder, data)
        (data / "elsewhere").rename(data / KEY)

    assert modes == [0o600, 0o600]


def test_a_run_without_contexts_has_nothing_to_undo(folder):
    assert ContextStateStore.load(folder, folder.parents[1]).entries == []


def test_the_task_goes_over_the_scenario(plugins):
    named = contexts_of(workload(first={}, second={"fail": "setup"}), plugins)

    assert [(one.name, one.config) for one in named] == [
        ("first", {}),
        ("second", {"fail": "setup"}),
    ]


def task(scenario, **contexts):
    return {
        "version": 2,
        "title": "t",
        "subtasks": [{"title": "s", "scenario": {scenario: {}}, "contexts": contexts}],
    }


def test_tasks_cannot_name_hidden_contexts_and_configurations_are_checked(plugins):
    with pytest.raises(TaskError) as caught:
        checked_task(
            task("Bad.run", second={}, dummy_context={"fail_setup": 1, "fail": True}),
            "task.yaml",
            plugins,
        )
    reported = {problem.place: problem.message for problem in caught.value.problems}

    assert reported["subtasks[0].contexts.second"] == "is hidden: only scenarios ask for it"
    assert "true or false" in reported["subtasks[0].contexts.dummy_context.fail_setup"]
    assert "unknown key" in reported["subtasks[0].contexts.dummy_context.fail"]
    assert "Bad.run needs the context second" in reported["subtasks[0].scenario"]
    assert checked_task(task("Mine.run", dummy_context={}), "task.yaml", plugins)


def giving_up(log, hung: str):
    """Ctrl-C as soon as a context hangs."""

    def poll(undoing):
        if any(line.startswith(hung) for line in log):
            raise KeyboardInterrupt

    return poll


def test_a_setup_without_end_is_left_with_those_before_it(objects, plugins, log):
    contexts = ContextStack(objects, plugins)
    one = workload(first={}, second={"fail": "no end of setup"}, third={})

    with (
        pytest.raises(KeyboardInterrupt),
        contexts.around(0, one, check=lambda: None, poll=giving_up(log, "setup second")),
    ):
        pytest.fail("the load has begun")

    assert contexts.left == [
        f"context {name} is not undone: one was being set up when Ctrl-C ended the run"
        for name in ("first", "second")
    ]
    assert contexts.holds


def test_an_undoing_without_end_is_left_to_cleanup(objects, plugins, log):
    contexts = ContextStack(objects, plugins)
    one = workload(first={}, second={"fail": "no end of cleanup"}, third={})

    with contexts.around(0, one, check=lambda: None, poll=giving_up(log, "cleanup second")):
        pass

    assert contexts.left == [
        f"context {name} is not undone: Ctrl-C ended the run before that was done"
        for name in ("first", "second")
    ]
    assert contexts.holds


def test_a_context_that_tells_nothing_is_named_with_how_far_it_is(
    objects, plugins, log, monkeypatch
):
    monkeypatch.setattr(context_stack, "SILENT_S", 0.0)
    contexts = ContextStack(objects, plugins)
    one = workload(first={}, second={"fail": "no end of setup"}, third={})
    silent = []

    def poll(undoing):
        silent.append(contexts.silent)
        giving_up(log, "setup second")(undoing)

    with pytest.raises(KeyboardInterrupt), contexts.around(0, one, check=lambda: None, poll=poll):
        pytest.fail("the load has begun")

    assert silent[-1][:3] == ("setting up context second", 0, 1)
    contexts._tell("volumes", 3, 5)
    assert contexts.silent[:3] == ("setting up context second", 3, 5)
    monkeypatch.setattr(context_stack, "SILENT_S", 60.0)
    assert contexts.silent is None


def test_no_context_is_named_when_none_is_under_way(objects, plugins, monkeypatch):
    monkeypatch.setattr(context_stack, "SILENT_S", 0.0)
    contexts = ContextStack(objects, plugins)

    with contexts.around(0, workload(first={}, second={}), check=lambda: None, poll=lambda _: None):
        during = contexts.silent

    assert (during, contexts.silent) == (None, None)


@pytest.fixture
def searching(objects):
    """A workload with a context that searches, and one with another context."""
    made = {"names": "key", "other": 1, "third": 2}
    objects.add(Entry(workload=0, name="first", config={}))
    objects.add(Entry(workload=0, name="searching", config={}, made=made))
    objects.add(Entry(workload=1, name="first", config={}))
    return objects


def test_resources_in_error_are_searched_by_the_context_that_can(searching, plugins):
    contexts = ContextStack(searching, plugins)
    shown = []

    def poll(undoing):
        shown.append(contexts.history.under_way[0])

    found = contexts.in_error(0, poll=poll, patient=lambda: not shown)

    assert (found.waited_s, found.problem) == (3.0, "")
    assert shown[0] == "looking for resources in error"
    # no context that searches, and no context at all
    assert contexts.in_error(1, poll=poll, patient=lambda: False) is None
    assert contexts.in_error(2, poll=poll, patient=lambda: False) is None


def test_a_search_that_the_user_breaks_off_says_so(searching, plugins):
    over = threading.Event()

    def poll(undoing):
        raise KeyboardInterrupt

    contexts = ContextStack(searching, plugins)
    found = contexts.in_error(0, poll=poll, patient=lambda: not over.wait(0.01))
    over.set()

    assert found.problem == "Ctrl-C ended the search for resources in error"
    assert contexts.history.under_way is None


@pytest.mark.parametrize("place", ["__init__", "search"])
def test_an_exception_of_a_search_is_its_problem(objects, plugins, place):
    objects.add(Entry(workload=0, name="searching", config={"fail": place}))

    found = ContextStack(objects, plugins).in_error(0, poll=lambda _: None, patient=lambda: False)

    assert found.problem == ("resources in error could not be searched: KeyError: 'odd\\ud800'")


def test_nothing_is_searched_once_contexts_are_being_undone(searching, plugins):
    searching.prepared[0] = PreparedWorkload(args={}, context={}, over=True)
    contexts = ContextStack(searching, plugins)

    assert contexts.in_error(0, poll=lambda _: None, patient=lambda: False) is None
