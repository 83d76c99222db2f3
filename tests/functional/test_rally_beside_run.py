"""Rally's criteria, hooks and triggers, from a plug-in path, with a scenario of osbench."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.runs import Site, site
from osbench.edges.rally import importing

pytestmark = [
    pytest.mark.functional,
    pytest.mark.skipif(
        not importing.is_installed(), reason="the extra osbench[rally] is not installed"
    ),
]

PLUGIN = '''
from rally.task import hook, sla


@sla.configure(name="beside_errors")
class Errors(sla.SLA):
    """Which errors there were."""

    CONFIG_SCHEMA = {"type": "array", "items": {"type": "string"}}

    def __init__(self, allowed):
        super().__init__(allowed)
        self.seen = set()

    def add_iteration(self, iteration):
        self.seen.update(iteration["error"][:1])
        self.success = self.seen <= set(self.criterion_value)
        return self.success

    def merge(self, other):
        raise NotImplementedError

    def details(self):
        return f"seen: {sorted(self.seen)}"


@hook.configure(name="beside_note")
class Note(hook.HookAction):
    CONFIG_SCHEMA = {"type": "string"}

    def run(self):
        chart = {"title": "Noted", "chart_plugin": "TextArea", "data": [self.config]}
        self.add_output(complete=chart)


@hook.configure(name="beside_thirds")
class Thirds(hook.HookTrigger):
    CONFIG_SCHEMA = {"type": "object"}

    def get_listening_event(self):
        return "iteration"

    def on_event(self, event_type, value=None):
        return value % 3 == 0 and super().on_event(event_type, value)
'''


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        found.rally = True
        yield found


def test_rallys_plugins_judge_and_act_during_a_load(here: Site) -> None:
    path = str(here.write("plugins/beside_plugin.py", PLUGIN))
    workload = {
        "scenario": {"Dummy.failure": {"sleep": 0.01, "from_iteration": 4, "to_iteration": 4}},
        "runner": {"constant": {"times": 9, "concurrency": 2}},
        "sla": {"beside_errors": ["DummyError"], "failure_rate@rally": {"max": 5}},
        "hooks": [
            {"action": {"beside_note": "x"}, "trigger": {"beside_thirds": {}}},
            {
                "action": {"sys_call@rally": "false"},
                "trigger": {"event@rally": {"unit": "time", "at": [0]}},
            },
        ],
    }

    done = here.run(here.task(workload), "--plugin-path", path, "--workers", "1")

    (ran,) = done.result["workloads"]
    noted, called = ran["hooks"]
    assert [(row["success"], row["detail"].partition(":")[0]) for row in ran["sla"]] == [
        (True, "seen"),
        (False, "Failure rate criteria 0.00% <= 11.11% <= 5.00% - Failed"),
    ]
    assert done.code == 1
    assert [result["triggered_by"]["value"] for result in noted["results"]] == [3, 6, 9]
    assert noted["results"][0]["output"]["complete"][0]["data"] == ["x"]
    assert called["summary"] == {"failed": 1}
    assert called["results"][0]["error"]["msg"] == "Subprocess returned 1"


def test_what_needs_rallys_database_is_refused(here: Site) -> None:
    hook = {
        "action": {"fault_injection@openstack": {"action": "restart keystone service"}},
        "trigger": {"event": {"unit": "time", "at": [1]}},
    }
    task = here.task({"scenario": {"Dummy.dummy": {}}, "hooks": [hook]})

    done = here.coord("validate", task)

    assert done.code == 2
    assert "Rally's database" in done.out + done.err
