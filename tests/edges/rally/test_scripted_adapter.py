"""Runners of Rally's plug-ins that start iterations by their own code, in this process."""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.rally import importing
from osbench.edges.rally.scripted_iterations import DoneAction, DoneIteration, LoadOver

pytestmark = pytest.mark.skipif(
    not importing.is_installed(), reason="the extra osbench[rally] is not installed"
)

#: The first is Rally's own sample, from "Scenario runner as a plugin" of Rally 5.1.
PLUGIN = """
import copy
import multiprocessing
import threading
from concurrent import futures
from multiprocessing import Process, Queue

from rally.plugins.task.runners import constant
from rally.task import runner
from rally.task.runner import _run_scenario_once as once


class Base(runner.ScenarioRunner):
    CONFIG_SCHEMA = {"type": "object"}


@runner.configure(name="scripted_sample")
class Sample(Base):
    def _run_scenario(self, cls, method_name, context, args):
        for i in range(self.config["times"]):
            run_args = (i, cls, method_name, runner._get_scenario_context(context), args)
            result = runner._run_scenario_once(run_args)
            self._send_result(result)


@runner.configure(name="scripted_today")
class Today(Base):
    def _run_scenario(self, cls, method_name, context, args):
        results = []
        for i in range(self.config["times"]):
            made = runner._get_scenario_context(i, context)
            results.append(once(cls, method_name, made, args, self.event_queue))
            self._send_result(results[-1])
        self._flush_results()
        self.task.results = results


@runner.configure(name="scripted_pool")
class Pool(Base):
    def _run_scenario(self, cls, method_name, context, args):
        queue, events = multiprocessing.Queue(), Queue()
        arguments = iter([(queue, cls, method_name, context, args, events)] * 3)
        pool = self._create_process_pool(3, _work, arguments)
        self._join_processes(pool, queue, events)


def _work(queue, cls, method_name, context, args, events, info):
    for i in range(4):
        made = runner._get_scenario_context(i, context)
        runner._worker_thread(queue, cls, method_name, made, args, events)


@runner.configure(name="scripted_executor")
class Executor(Base):
    def _run_scenario(self, cls, method_name, context, args):
        def one(i):
            made = copy.deepcopy(context)
            made["iteration"] = i
            return runner._run_scenario_once(cls, method_name, made, args, self.event_queue)

        with futures.ProcessPoolExecutor(2) as pool:
            list(pool.map(one, range(6)))


@runner.configure(name="scripted_constant")
class Constant(constant.ConstantScenarioRunner):
    def _run_scenario(self, cls, method_name, context, args):
        super()._run_scenario(cls, method_name, context, args)


@runner.configure(name="scripted_users")
class Users(Base):
    def _run_scenario(self, cls, method_name, context, args):
        made = runner._get_scenario_context(0, context)
        made["users"] = ["mine"]
        runner._run_scenario_once(cls, method_name, made, args, self.event_queue)


@runner.configure(name="scripted_maker")
class Maker(Base):
    def _run_scenario(self, cls, method_name, context, args):
        try:
            getattr(cls(context), method_name)(**args)
        except Exception:
            pass


@runner.configure(name="scripted_crash")
class Crash(Base):
    def _run_scenario(self, cls, method_name, context, args):
        process = Process(target=int, args=("no number",))
        process.start()
        process.join()


@runner.configure(name="scripted_inventor")
class Inventor(Base):
    def _run_scenario(self, cls, method_name, context, args):
        self._send_result({"duration": 1, "timestamp": 0, "error": []})


@runner.configure(name="scripted_patient")
class Patient(Base):
    def _run_scenario(self, cls, method_name, context, args):
        self.aborted.wait(60)
"""


class Load:
    """A load of one workload that counts what is started."""

    def __init__(self, most: int = 1000) -> None:
        self.args: Mapping[str, Any] = {"size": 3}
        self.context: Mapping[str, Any] = {"run": "r-1", "scenario": "Dummy.dummy"}
        self.over = False
        self.asides: list[str] = []
        self.given: list[Mapping[str, Any]] = []
        self.when_over: list[Callable[[], None]] = []
        self._most = most
        self._lock = threading.Lock()

    def call_when_over(self, callback: Callable[[], None]) -> None:
        self.when_over.append(callback)

    def iterate(self, args: Mapping[str, Any]) -> DoneIteration:
        with self._lock:
            if len(self.given) >= self._most:
                self.over = True
                raise LoadOver
            self.given.append(args)
            number = len(self.given)
        outer = DoneAction(name="a", parent=-1, started_at=10.0, ended_at=12.0, failed=False)
        inner = DoneAction(name="b", parent=0, started_at=11.0, ended_at=12.0, failed=True)
        return DoneIteration(
            number=number,
            started_at=10.0,
            duration_s=2.0,
            idle_s=0.5,
            error=() if number % 2 else ("KeyError", "k", "Traceback"),
            actions=(outer, inner),
            outputs=(),
        )

    def tell_aside(self, what: str) -> None:
        self.asides.append(what)


@pytest.fixture
def drive(tmp_path):
    (tmp_path / "scripted.py").write_text(PLUGIN)
    plugins = Plugins([str(tmp_path / "scripted.py")])

    def driven(name: str, load: Load, **config: Any) -> Any:
        kind: Any = plugins.get("runner", name)
        kind(config).drive(load)
        return kind.RALLY

    return driven


@pytest.mark.parametrize("name", ["scripted_sample", "scripted_today"])
def test_every_call_of_rallys_function_is_an_iteration(drive, name):
    load = Load()

    drive(name, load, times=5)

    assert load.given == [{"size": 3}] * 5
    assert not load.asides


@pytest.mark.parametrize(
    ("name", "config", "count"),
    [
        ("scripted_pool", {}, 12),
        ("scripted_executor", {}, 6),
        ("scripted_constant", {"times": 9, "concurrency": 3}, 9),
    ],
)
def test_processes_of_a_runner_are_threads_whose_iterations_count(drive, name, config, count):
    load = Load()

    drive(name, load, **config)

    assert len(load.given) == count
    assert not load.asides


def test_a_result_is_as_rallys_runners_have_it(drive, monkeypatch):
    from osbench.edges.rally.adapters import scripted_adapter

    seen: list[Any] = []
    found = scripted_adapter._result
    monkeypatch.setattr(
        scripted_adapter, "_result", lambda done: seen.append(found(done)) or seen[-1]
    )

    drive("scripted_sample", Load(), times=2)

    inner = {"name": "b", "children": [], "started_at": 11.0, "finished_at": 12.0, "failed": True}
    outer = {"name": "a", "children": [inner], "started_at": 10.0, "finished_at": 12.0}
    assert seen[0] == {
        "timestamp": 10.0,
        "duration": 2.0,
        "idle_duration": 0.5,
        "error": [],
        "output": {"additive": [], "complete": []},
        "atomic_actions": [outer],
    }
    assert seen[1]["error"] == ["KeyError", "k", "Traceback"]


def test_multiprocessing_is_as_before_when_the_code_has_returned(drive):
    runner = drive("scripted_pool", Load())

    names = runner._run_scenario.__globals__
    assert names["multiprocessing"] is multiprocessing
    assert names["Process"] is multiprocessing.Process
    assert names["Queue"] == multiprocessing.Queue


def test_rallys_functions_still_run_iterations_of_rally(drive):
    from rally.common.utils import DequeAsQueue
    from rally.task import runner

    drive("scripted_sample", Load(), times=1)

    class Scenario:
        def __init__(self, context):
            self._output = {"additive": [], "complete": []}

        def run(self):
            pass

        def idle_duration(self):
            return 0

        def atomic_actions(self):
            return []

    context = runner._get_scenario_context(4, {"task": {"uuid": "u"}})
    queue = DequeAsQueue(deque())
    result = runner._run_scenario_once(Scenario, "run", context, {}, queue)
    assert (context["iteration"], result["error"]) == (5, [])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scripted_users", "changes users of the context"),
        ("scripted_maker", "makes the scenario itself"),
    ],
)
def test_what_could_not_be_accounted_for_ends_the_load(drive, name, why):
    with pytest.raises(PluginError, match=why):
        drive(name, Load())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_process_that_fails_ends_the_load(drive):
    with pytest.raises(ValueError, match="no number"):
        drive("scripted_crash", Load())


def test_results_of_no_iteration_are_told(drive):
    load = Load()

    drive("scripted_inventor", load)

    assert load.asides == ["results that the runner made itself, of no iteration"]


def test_a_load_that_is_over_ends_the_code(drive):
    load = Load(most=3)
    with pytest.raises(LoadOver):
        drive("scripted_sample", load, times=10)
    drive("scripted_pool", Load(most=3))

    assert len(load.given) == 3


def test_a_load_that_is_over_sets_the_event_of_the_runner(drive):
    load = Load()
    load.call_when_over = lambda callback: callback()  # type: ignore[method-assign]

    drive("scripted_patient", load)


def test_code_that_outlives_its_load_leaves_the_next_one_its_threads(drive):
    entered, go = threading.Event(), threading.Event()
    late = Load()
    late.call_when_over = lambda _: (entered.set(), go.wait(60))  # type: ignore[assignment,return-value]
    zombie = threading.Thread(target=drive, args=("scripted_inventor", late))
    zombie.start()
    assert entered.wait(60)

    next_load = Load()

    def end_of_the_other(_: Any) -> None:
        go.set()
        zombie.join()

    next_load.call_when_over = end_of_the_other  # type: ignore[method-assign]
    runner = drive("scripted_pool", next_load)

    assert len(next_load.given) == 12
    assert runner._run_scenario.__globals__["multiprocessing"] is multiprocessing
