"""Rally's own scenarios and contexts in real runs, as they are, without a cloud."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.runs import Finished, Site, checked, site

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

pytestmark = pytest.mark.functional


@pytest.fixture
def here(guest: Site) -> Site:
    """A site whose runs use a worker that imports Rally once."""
    guest.rally = True
    return guest


def workload(name: str, times: int = 6, **more: Any) -> dict[str, Any]:
    args = more.pop("args", {})
    runner = {"constant": {"times": times, "concurrency": 2, "timeout": 20}}
    sla = {"failure_rate": {"max": 100}}
    return {"scenario": {name: args}, "runner": runner, "sla": sla, **more}


def test_rallys_dummies_run_as_they_are(here: Site) -> None:
    slow = workload("Dummy.dummy@rally", 1, args={"sleep": 60})
    slow["runner"] = {"constant": {"times": 1, "concurrency": 1, "timeout": 4}}
    task = here.task(
        workload("Dummy.dummy@rally", args={"sleep": 0.01}),
        workload(
            "Dummy.dummy_timed_atomic_actions@rally",
            args={"number_of_actions": 3, "sleep_factor": 0.001},
        ),
        workload("Dummy.dummy_output@rally"),
        workload("Dummy.dummy_exception@rally", args={"sleep": 0, "message": "as told"}),
        workload("Dummy.dummy_random_action@rally", args={"actions_num": 2}),
        workload("Dummy.failure@rally", args={"sleep": 0, "from_iteration": 2, "to_iteration": 4}),
        slow,
    )

    done = here.run(task)

    assert done.code == 0, done.err
    sums = [checked(one) for one in done.result["workloads"]]
    assert [one["ok"] for one in sums] == [6, 6, 6, 0, 6, 3, 0]
    assert sums[3]["failed"] == 6
    assert sums[5]["failed"] == 3
    assert sums[6]["timed_out"] == 1
    names = [list(one["actions"]) for one in done.result["workloads"]]
    assert names[1] == ["action_0", "action_1", "action_2"]
    # what a timed-out iteration had begun is there, as it is of those that end
    assert names[0] == names[6] == ["foo", "foo > bar"]
    (error,) = done.result["workloads"][3]["errors"]
    assert error["type"] == "DummyScenarioException"
    assert "expected exception: 'as told'" in error["message"]


def test_rallys_context_is_set_up_for_rallys_scenario_and_reported_where_it_fails(
    here: Site,
) -> None:
    good = workload("Dummy.dummy@rally", contexts={"dummy_context": {}})
    bad = workload("Dummy.dummy@rally", contexts={"dummy_context": {"fail_cleanup": True}})
    never = workload("Dummy.dummy@rally", contexts={"dummy_context": {"fail_setup": True}})

    done = here.run(here.task(good, bad))
    refused = here.run(here.task(never, good))

    assert done.code == 5, done.err
    assert [checked(one)["ok"] for one in done.result["workloads"]] == [6, 6]
    (note,) = done.result["notes"]
    assert "context dummy_context@default cannot be undone: RallyException: Oops" in note
    assert refused.code == 2
    assert [checked(one)["ok"] for one in refused.result["workloads"]] == [0, 6]
    (note,) = refused.result["notes"]
    assert "context dummy_context@default cannot be set up: RallyException: Oops" in note


OPTIONS = """
from rally.common import cfg
from rally.task import context, scenario


@context.configure(name="shelf", order=10)
class Shelf(context.Context):
    CONFIG_SCHEMA = {"type": "object", "properties": {"books": {"type": "integer"}}}

    def setup(self):
        self.context["books"] = [{"number": n} for n in range(self.config["books"])]

    def cleanup(self):
        assert len(self.context["books"]) == self.config["books"]


@scenario.configure(name="OsbenchTest.options", context={"shelf@default": {"books": 3}})
class Options(scenario.Scenario):
    def run(self):
        options = cfg.CONF.openstack
        assert options.nova_server_boot_prepoll_delay == 7.5
        assert options.enable_profiler is False
        assert cfg.CONF.scenario_resource_name_format == "mine_XXXXXXXX_XXXXXXXX"
        name = self.generate_random_name()
        assert name.startswith("mine_" + self.context["owner_id"].replace("-", "")[:8])
        for book in self.context["books"]:
            assert "read" not in book
            book["read"] = True
        self.context["books"].clear()
"""


def test_rallys_options_and_a_context_of_ones_own_reach_every_iteration() -> None:
    with site() as here:
        done = run_with_options(here)

    assert done.code == 0, done.err
    assert (done.sums["ok"], done.result["workloads"][0]["errors"]) == (20, [])


def run_with_options(here: Site) -> Finished:
    """A run of local mode, whose processes all read Rally's configuration of this home."""
    here.write(
        ".rally/rally.conf",
        "[DEFAULT]\nscenario_resource_name_format = mine_XXXXXXXX_XXXXXXXX\n"
        "[openstack]\nnova_server_boot_prepoll_delay = 7.5\n",
    )
    plugin = here.write("plugins/shelf.py", OPTIONS)
    task = here.task(workload("OsbenchTest.options", 20))

    return here.run(task, "--workers", "1", "--plugin-path", str(plugin.parent))
