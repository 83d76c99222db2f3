"""Rally's scenarios behind our interface, in one process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import msgpack
import pytest

from osbench.common.errors import ContextError
from osbench.common.plugin.atomic import WIDTH, Names, Recorder
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario import Scenario
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.edges.rally import importing

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

PLUGIN = '''
from rally.common.plugin import plugin
from rally.task import atomic, scenario, types


class Half(types.DeferredResource):
    def __init__(self, value):
        self.value = value

    def resolve(self, scenario):
        return self.value / 2 + scenario.context["iteration"]


@plugin.configure(name="osbench_half")
class HalfType(types.ResourceType):
    def pre_process(self, *, resource_spec, config, output_type):
        return Half(resource_spec)


@types.convert(number={"type": "osbench_half"})
@scenario.configure(name="OsbenchTest.all")
class All(scenario.Scenario):
    """For a test."""

    def __init__(self, context=None):
        super().__init__(context)
        with atomic.ActionTimer(self, "made"):
            self.service = self.atomic_actions()

    @atomic.action_timer("outer")
    def outer(self):
        try:
            with atomic.ActionTimer(self, "inner"):
                raise KeyError("inner")
        except KeyError:
            pass

    def run(self, number=0, taken=None, fail=False, output=None):
        """All that a scenario can do."""
        self.outer()
        self.sleep_between(0.01)
        if taken:
            taken["list"].append(1)
        said = [str(number), str(taken)] if output is None else output
        self.add_output(complete={"title": "t", "chart_plugin": "TextArea", "data": said})
        assert self.service is self._atomic_actions
        if fail:
            raise SystemExit("told to")
'''


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Plugins:
    file = tmp_path_factory.mktemp("rally") / "osbench_rally_test.py"
    file.write_text(PLUGIN, "utf-8")
    return Plugins([str(file)])


class Iterations:
    """Runs iterations of a scenario as a worker does."""

    def __init__(self, plugin: ScenarioPlugin, args: Mapping[str, Any]) -> None:
        assert plugin.prepare is not None
        self.plugin = plugin
        self.args, self.context = plugin.prepare(
            args, ContextEnvironment(run="r", scenario=plugin.name)
        )
        plugin.cls.warm_up(self.context)
        self.names = Names()
        self.recorder = Recorder(self.names)
        self.scenario: Any = None

    def run(self, iteration: int = 1, profiler: Any = None) -> Scenario:
        self.recorder = Recorder(self.names, profiler)
        self.scenario = object.__new__(self.plugin.cls)
        self.scenario._recorder = self.recorder
        self.scenario.__init__({**self.context, "iteration": iteration})
        getattr(self.plugin.cls, self.plugin.method)(self.scenario, **self.args)
        assert isinstance(self.scenario, Scenario)
        return self.scenario

    def actions(self) -> list[tuple[str, int, bool]]:
        """Name, parent's position, failed: of each action."""
        found = self.recorder.actions
        rows = [found[at : at + WIDTH] for at in range(0, len(found), WIDTH)]
        assert all(row[2] <= row[3] for row in rows)
        return [(self.names.names[row[0]], row[1], bool(row[4])) for row in rows]


def test_actions_are_recorded_as_they_are_nested(plugins: Plugins) -> None:
    runs = Iterations(plugins.scenario("OsbenchTest.all"), {})

    scenario = runs.run()

    assert runs.actions() == [("made", -1, False), ("outer", -1, False), ("inner", 1, True)]
    assert scenario._idle_ns == pytest.approx(10_000_000, abs=1)


def test_pauses_are_spans_of_a_traced_iteration(plugins: Plugins) -> None:
    class Profiler:
        def __init__(self) -> None:
            self.opened: list[str] = []
            self.closed: list[int] = []

        def open(self, name: str) -> int:
            self.opened.append(name)
            return len(self.opened)

        def close(self, number: int, info: Any = None) -> None:
            self.closed.append(number)

    profiler = Profiler()
    runs = Iterations(plugins.scenario("OsbenchTest.all"), {})
    runs.run(profiler=profiler)

    assert profiler.opened == ["made", "outer", "inner", "osbench.pause"]
    assert profiler.closed == [1, 3, 2, 4]


def test_actions_of_a_failing_iteration_are_kept_and_so_is_its_output(plugins: Plugins) -> None:
    runs = Iterations(plugins.scenario("OsbenchTest.all"), {"fail": True, "output": ["x"]})

    with pytest.raises(SystemExit, match="told to"):
        runs.run()

    assert [name for name, _, _ in runs.actions()] == ["made", "outer", "inner"]
    assert len(runs.scenario._outputs) == 1


def test_arguments_are_processed_once_and_settled_for_each_iteration(plugins: Plugins) -> None:
    runs = Iterations(plugins.scenario("OsbenchTest.all"), {"number": 8, "taken": {"list": []}})

    said = [runs.run(iteration)._outputs for iteration in (1, 2)]

    assert [msgpack.unpackb(one)["item"]["data"] for (one,) in map(list, said)] == [
        ["5.0", "{'list': [1]}"],
        ["6.0", "{'list': [1]}"],
    ]


def test_an_argument_that_cannot_be_sent_is_named(plugins: Plugins) -> None:
    with pytest.raises(ContextError, match=r"argument 'output': .*builtins.object, which"):
        Iterations(plugins.scenario("OsbenchTest.all"), {"output": [object()]})


def test_an_output_of_any_type_is_kept(plugins: Plugins) -> None:
    runs = Iterations(plugins.scenario("OsbenchTest.all"), {"output": [["one", {"a set"}]]})

    (packed,) = runs.run()._outputs

    assert msgpack.unpackb(packed)["item"]["data"] == [["one", ["a set"]]]


def test_the_plugin_tells_of_itself(plugins: Plugins) -> None:
    plugin = plugins.scenario("OsbenchTest.all@default")

    assert plugin.title == "All that a scenario can do."
    assert plugin.source == "rally"
    assert len(plugin.source_hash) == 64
    assert plugin.check_args({"wrong": 1})
    assert not plugin.check_args({"fail": True})


def test_rally_is_loaded_once_whatever_asks() -> None:
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(importing.load())) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [True] * 4
