"""Runners of Rally and of its plug-ins: which load osbench makes of them, and what it refuses."""

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Totals
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.edges.rally import importing

PLUGIN = '''
from rally.plugins.task.runners import constant, rps
from rally.task import runner


@runner.configure(name="adapters_pairs")
class Pairs(constant.ConstantScenarioRunner):
    """Two at a time."""

    def __init__(self, task, config, batch_size=0):
        super().__init__(task, {"concurrency": 2, **config}, batch_size)


@runner.configure(name="adapters_steady")
class Steady(rps.RPSScenarioRunner):
    def told(self):
        """Replaces nothing."""


@runner.configure(name="adapters_own")
class Own(runner.ScenarioRunner):
    def _run_scenario(self, cls, method_name, context, args):
        pass


@runner.configure(name="adapters_lacking")
class Lacking(runner.ScenarioRunner):
    pass


@runner.configure(name="adapters_whole")
class Whole(Own):
    def run(self, name, context, args):
        pass


@runner.configure(name="adapters_changed")
class Changed(constant.ConstantScenarioRunner):
    def _run_scenario(self, cls, method_name, context, args):
        pass
'''


@pytest.fixture
def plugins(tmp_path):
    if not importing.is_installed():
        pytest.skip("the extra osbench[rally] is not installed")
    (tmp_path / "runners.py").write_text(PLUGIN)
    return Plugins([str(tmp_path / "runners.py")])


def test_rallys_own_runners_are_osbenchs_with_their_platform_and_without_rally():
    plugins = Plugins()

    assert plugins.get("runner", "constant@default") is Constant
    for name in ("constant_for_duration", "rps", "serial"):
        assert plugins.get("runner", f"{name}@default") is plugins.get("runner", name)


def test_runners_are_osbenchs_whatever_is_preferred(plugins):
    assert Plugins(plugins.paths, "rally").get("runner", "constant") is Constant
    assert plugins.get("runner", "constant@rally") is Constant


@pytest.mark.parametrize(
    "name", ["adapters_pairs", "adapters_pairs@default", "adapters_pairs@rally"]
)
def test_a_runner_that_derives_from_rallys_is_run_as_a_closed_load(plugins, name):
    kind = plugins.get("runner", name)

    runner = kind({"times": 6})

    assert (kind.check({"times": 6}), kind.OPEN) == ([], False)
    assert (runner.planned, runner.concurrency) == (6, 2)
    assert runner.step(0.0, Totals(allotted=0, settled=0), [8]).users == (2,)
    assert kind.check({"times": 1}) != []
    assert kind.CONFIG_SCHEMA["properties"]["times"]["type"] == "integer"


def test_a_runner_that_derives_from_rallys_rps_is_run_as_an_open_load(plugins):
    kind = plugins.get("runner", "adapters_steady")

    runner = kind({"times": 4, "rps": 2})

    assert kind.OPEN
    assert list(runner.step(0.0, Totals(allotted=0, settled=0), [8]).arrivals) == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("name", ["adapters_own", "adapters_changed", "adapters_own@rally"])
def test_a_runner_that_starts_iterations_itself_has_one_process_of_one_worker(plugins, name):
    kind = plugins.get("runner", name)

    runner = kind({})
    begun = runner.step(0.0, Totals(allotted=0, settled=0), [8, 8])
    over = runner.step(3.0, Totals(allotted=9, settled=9, ended=True), [8, 8])

    assert issubclass(kind, ScriptedRunner)
    assert (kind.check({}), runner.planned, runner.concurrency) == ([], None, 1)
    assert (begun.users, begun.budget, begun.done) == ((1, 0), None, False)
    assert (over.users, over.stop_s, over.done) == ((0, 0), 3.0, True)
    assert "in one process of one worker" in kind.notes({})[0]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("adapters_lacking", "it lacks _run_scenario"),
        ("adapters_whole", "it overrides the method run"),
    ],
)
def test_a_runner_that_cannot_be_run_is_refused_with_the_reason(plugins, name, why):
    with pytest.raises(PluginError, match=why):
        plugins.get("runner", name)


def test_a_runner_with_processes_of_its_own_kind_is_refused(tmp_path):
    if not importing.is_installed():
        pytest.skip("the extra osbench[rally] is not installed")
    (tmp_path / "forks.py").write_text(
        "import multiprocessing\n"
        "from rally.task import runner\n"
        "class Child(multiprocessing.Process):\n"
        "    def run(self): pass\n"
        "@runner.configure(name='adapters_forks')\n"
        "class Forks(runner.ScenarioRunner):\n"
        "    def _run_scenario(self, cls, method_name, context, args): Child().start()\n"
    )

    with pytest.raises(PluginError, match="its class Child derives from a process"):
        Plugins([str(tmp_path / "forks.py")]).get("runner", "adapters_forks")


@pytest.mark.parametrize(
    ("config", "timeout_s"), [({}, 0), ({"timeout": 2.5}, 2.5), ({"timeout": "long"}, 0)]
)
def test_the_timeout_of_a_runner_bounds_an_iteration(plugins, config, timeout_s):
    assert plugins.get("runner", "adapters_own")(config).timeout_s == timeout_s
