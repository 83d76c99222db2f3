"""Rally's own criteria, hooks and triggers, and those of a plug-in file, behind our interfaces."""

import time

import pytest

from helpers.iterations import Action, columns, failed, ok, statistics
from osbench.common.plugin.hook import Event, Failed
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import Columns
from osbench.common.task import HookConfig, Named
from osbench.coordinator.plugins.hooks.executor import ActiveHook
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.edges.rally import importing
from osbench.edges.rally.adapters.hook_adapter import hook_class
from osbench.edges.rally.adapters.sla_adapter import sla_class
from osbench.edges.rally.adapters.trigger_adapter import trigger_class
from servers.child import PATIENCE_S

pytestmark = pytest.mark.skipif(
    not importing.is_installed(), reason="the extra osbench[rally] is not installed"
)

PLUGIN = '''
from rally.task import hook, sla


@sla.configure(name="adapters_few_keyerrors")
class FewKeyErrors(sla.SLA):
    """Limits the number of KeyErrors."""

    CONFIG_SCHEMA = {"type": "integer", "minimum": 0}
    found = 0

    def add_iteration(self, iteration):
        if iteration["error"] and iteration["error"][0] == "KeyError":
            self.found += 1
        self.last = (iteration["timestamp"], iteration["atomic_actions"])
        self.success = self.found <= self.criterion_value
        return self.success

    def merge(self, other):
        raise NotImplementedError

    def details(self):
        return f"{self.found} KeyErrors, last at {self.last[0]}"


@hook.configure(name="adapters_tell")
class Tell(hook.HookAction):
    CONFIG_SCHEMA = {"type": "string"}

    def run(self):
        chart = {"title": "told", "chart_plugin": "TextArea", "data": [self.task["uuid"]]}
        self.add_output(complete=chart)
        if self.config == "error":
            self.set_error("Trouble", "as asked", "details of it")
        elif self.config == "status":
            self.set_status("odd")
        elif self.config == "database":
            self.task["deployment_uuid"]


@hook.configure(name="adapters_powers")
class Powers(hook.HookTrigger):
    """At each power of two."""

    CONFIG_SCHEMA = {"type": "object", "properties": {"unit": {}}, "additionalProperties": False}

    def get_listening_event(self):
        return self.config["unit"]

    def on_event(self, event_type, value=None):
        if value & (value - 1):
            return False
        return super().on_event(event_type, value)
'''


@pytest.fixture(scope="module", autouse=True)
def _plugin(tmp_path_factory):
    file = tmp_path_factory.mktemp("adapters") / "adapters_plugin.py"
    file.write_text(PLUGIN)
    importing.load([str(file)])


def rows(iterations, errors=()):
    found = columns(iterations)
    return Columns(**{**vars(found), "failures": dict(errors), "t0_at": 1000.0})


def test_what_rally_has_not_is_none():
    assert [find("no_such_thing") for find in (sla_class, hook_class, trigger_class)] == [None] * 3


def test_a_criterion_sees_errors_and_instants_and_judges():
    kind = sla_class("adapters_few_keyerrors")
    judge = kind(1)

    judge.add(rows([*ok(512), *failed(512)], {1: ("KeyError", "'a'", "f()")}))
    within = judge.check(statistics())
    breach = judge.breach(statistics(), None)
    judge.add(rows(failed(512), {1: ("KeyError", "'a'", "f()")}))
    judge.add(rows(failed(512), {1: ("OSError", "no", "f()")}))

    assert (kind.NAME, kind.__doc__) == (
        "adapters_few_keyerrors",
        "Limits the number of KeyErrors.",
    )
    assert within.success and within.detail == "1 KeyErrors, last at 1001.0"
    assert breach is None
    verdict = judge.check(statistics())
    assert (verdict.criterion, verdict.success) == ("adapters_few_keyerrors", False)
    assert judge.breach(statistics(), 1000).detail.startswith("2 KeyErrors")


def test_a_criterion_of_rallys_without_data_fails():
    assert not sla_class("failure_rate")({"max": 0}).check(statistics()).success


def test_atomic_actions_reach_rallys_criteria():
    judge = sla_class("max_avg_duration_per_atomic@default")({"boot": 1.0})
    one = ok(1024)[0]

    judge.add(rows([type(one)(ticks=1024, actions=(Action(name="boot", ticks=768),))]))

    verdict = judge.check(statistics())
    assert not verdict.success
    assert "boot" in verdict.detail and "1.5" in verdict.detail


def test_a_criterion_that_raises_fails_and_spares_the_run():
    criteria = SlaEvaluator(
        [Named(name="performance_degradation@rally", config={"max_degradation": "x"})], Plugins()
    )

    criteria.add(rows(ok(1, 2)))

    (verdict,) = criteria.judge(statistics())
    assert not verdict.success
    assert "cannot be judged" in verdict.detail


def test_configurations_are_checked_by_rallys_validators():
    assert sla_class("failure_rate").check_config({"max": 5}) == []
    assert trigger_class("event").check_config({"unit": "time", "at": [1]}) == []
    assert trigger_class("adapters_powers").check_config({"unit": "hours"}) == [
        "listens to hours; there are time and iteration"
    ]
    (said,) = hook_class("fault_injection@openstack").check_config({"action": "x"})
    assert "Rally's database" in said


def fired(action, config, trigger="event", **more):
    """Results of a hook by the first five iterations, oldest first."""
    described = HookConfig(
        action=Named(name=action, config=config),
        trigger=Named(name=trigger, config={"unit": "iteration", **more}),
    )
    hooks = ActiveHook(described, Plugins(), run="r1")
    hooks.look(1, 5)
    deadline = time.monotonic() + PATIENCE_S
    while hooks.running():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return [result for result, _ in hooks.pending()]


def test_a_hook_of_rallys_is_run_and_its_output_kept():
    (result,) = fired("adapters_tell@rally", "well", at=[2])

    assert (result.status, result.event.value) == ("success", 2)
    assert result.output["complete"][0]["data"] == ["r1"]


@pytest.mark.parametrize(
    ("config", "etype", "message"),
    [
        ("error", "Trouble", "as asked"),
        ("status", "Failed", "the action ended as odd"),
        ("database", "LookupError", "the task's deployment_uuid is in Rally's database"),
    ],
)
def test_what_a_hook_of_rallys_says_of_its_failure_is_reported(config, etype, message):
    (result,) = fired("adapters_tell@rally", config, at=[1])

    assert (result.status, result.error.etype) == ("failed", etype)
    assert message in result.error.msg


def test_rallys_system_call_says_what_failed():
    with pytest.raises(Failed, match="Subprocess returned 1") as caught:
        hook_class("sys_call")("false").run(Event(unit="time", value=0))

    assert caught.value.output["complete"][0]["chart_plugin"] == "TextArea"


def test_a_trigger_of_rallys_decides_value_by_value():
    trigger = trigger_class("adapters_powers")({"unit": "iteration"})
    periodic = trigger_class("periodic")({"unit": "time", "step": 3, "end": 7})

    in_steps = [*trigger.due(-1, 3), *trigger.due(3, 3), *trigger.due(3, 20)]

    assert in_steps == [1, 2, 4, 8, 16]
    assert list(periodic.due(-1, 100)) == [0, 3, 6]
    assert periodic.config == {"unit": "time", "step": 3, "end": 7}


def test_a_trigger_of_rallys_fires_hooks():
    results = fired("adapters_tell@rally", "well", "adapters_powers@rally")

    assert [result.event.value for result in results] == [1, 2, 4]
