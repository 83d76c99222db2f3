"""Drills of a cloud: resources that a fault leaves in error are counted before they are removed."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers.drills import at, hook, phase_of, resumable
from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.runs import Site, site
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import counting_server

pytestmark = pytest.mark.functional

SERVER = {"image": {"name": "cirros"}, "flavor": {"name": "m1.tiny"}}


def boots(broken: Path, **more: Any) -> dict[str, Any]:
    """Servers are booted, and break while there is the file `broken`."""
    return {
        "scenario": {"NovaServers.boot_and_delete_server": SERVER},
        "runner": {"rps": {"rps": 10, "times": 60}},
        "hooks": [
            hook("break", f"touch {broken}", at("iteration", 15)),
            hook("mend", f"rm -f {broken}", at("iteration", 35)),
        ],
        "phases": {"fault": "break", "after": "mend"},
        "sla": {"drill": {"left_in_error": {"max": 0}}},
        **more,
    }


@pytest.fixture
def here(cloud: FakeCloud) -> Iterator[Site]:
    with site() as found:
        found.deployment(cloud.deployment(), "cloud")
        yield found


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as found:
        found.absent.clear()
        found.make("images", {"name": "cirros", "status": "active"})
        found.make("flavors", {"name": "m1.tiny"})
        yield found


def test_resources_left_in_error_are_counted_before_they_are_removed(
    here: Site, cloud: FakeCloud, tmp_path: Path
) -> None:
    broken = here.home / "broken"
    failed: list[bool] = []

    def boots_fail() -> bool:
        failed.append(broken.exists())
        return failed[-1]

    cloud.boots_fail = boots_fail
    cloud.faults.append([r"GET /cinder/snapshots/detail", 403, 100])
    volumes = boots(broken, scenario={"CinderVolumes.create_and_delete_volume": {"size": 1}})
    page = tmp_path / "page.html"

    done = here.run(here.task(boots(broken), boots(here.home / "other"), volumes))
    name = done.result["run_id"]
    text = " ".join(here.coord("results", name).out.split())
    made = here.coord("report", name, "--html", str(page))

    assert done.code == 1
    broke, calm, unlisted = done.result["workloads"]
    number = sum(failed)
    assert number
    drill = broke["drill"]
    states = {"ERROR": number}
    kind = {"kind": "servers", "in_error": number, "changing": 0, "states": states}
    assert (drill["left"]["kinds"], drill["left"]["unlisted"]) == ([kind], {})
    # an iteration fails if its server does
    rows = [row for row in here.rows(name) if row["workload"] == "0"]
    phases = Counter(phase_of(row, drill) for row in rows if row["outcome"] == "failed")
    assert {one["name"]: one["left"].get("servers", 0) for one in drill["phases"]} == {
        phase: phases[phase] for phase in ("before", "fault", "after")
    }
    for one in drill["phases"]:
        low, high = one["leaving_ci"]
        assert low <= one["leaving_share"] <= high
        assert one["leaving_share"] == one["bad_share"]
    assert broke["sla"][0]["detail"] == f"{number} resources left in error, allowed 0"
    assert f"{number} resources left in error: {number} servers (ERROR)" in text
    assert not broke["contexts"][-1]["cleanup"]["error"]
    assert "servers" not in [kind for kind, some in cloud.objects.items() if some]

    assert calm["drill"]["left"]["kinds"] == [
        {"kind": "servers", "in_error": 0, "changing": 0, "states": {}}
    ]
    assert (calm["sla"][0]["success"], calm["sla"][0]["detail"]) == (
        True,
        "0 resources left in error, allowed 0",
    )
    assert "0 resources left in error, of servers" in text

    assert list(unlisted["drill"]["left"]["unlisted"]) == ["snapshots"]
    assert not unlisted["sla"][0]["success"]
    assert "snapshots could not be listed: " in unlisted["sla"][0]["detail"]
    assert "snapshots could not be listed: " in text
    assert made.code == 0, made.err
    assert "left in error" in page.read_text("utf-8")


def test_resources_are_searched_once_though_the_coordinator_is_killed(
    here: Site, cloud: FakeCloud
) -> None:
    broken = here.home / "broken"
    failed: list[bool] = []

    def boots_fail() -> bool:
        failed.append(broken.exists())
        return failed[-1]

    cloud.boots_fail = boots_fail
    # the cleanup after the search hangs; the test below has a kill before the search
    cloud.faults.append(["DELETE /nova/servers/", 503, 1_000_000])
    task = here.task(boots(broken, scenario={"NovaServers.boot_server": SERVER}))
    run = here.begin("osbench-coord", "run", "--json", "--workers", "1", task)
    run.wait_for(lambda: cloud.faults[0][2] < 1_000_000)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    cloud.faults.clear()
    searched = len(searches(cloud))
    (name,) = resumable(here)

    done = here.coord("resume", name, "--json")

    (workload,) = done.printed["workloads"]
    assert workload["drill"]["left"]["kinds"][0]["in_error"] == sum(failed) > 0
    assert len(searches(cloud)) == searched > 0
    assert not cloud.objects["servers"]
    here.await_nothing_left()


def test_a_drill_is_searched_when_its_whole_group_has_ended(here: Site, cloud: FakeCloud) -> None:
    with counting_server() as counting:
        counting.stall(3600)
        request = {"url": counting.url, "method": "GET", "status_code": 200}
        longer = {
            "scenario": {"HttpRequests.check_request": request},
            "runner": {"constant": {"times": 3, "concurrency": 1}},
        }
        drill = boots(here.home / "broken", runner={"rps": {"rps": 20, "times": 40}})
        drill["sla"]["failure_rate"] = {"max": 100}
        task = here.task({"workloads": [drill, longer], "run_in_parallel": True})
        run = here.begin("osbench-coord", "run", "--json", "--workers", "2", task)
        run.wait_for(lambda: next(here.data.glob("runs/*/journal"), None))
        (path,) = here.data.glob("runs/*")
        run.wait_for(lambda: (0, "close") in records(path))
        facts = partial(here.facts, path.name)
        at = time.time()
        run.wait_for(lambda: (facts().timeline or {}).get("at", 0) > at + 1)
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        counting.stall(0)
        killed, _ = facts().report.workloads

        assert [one.criterion for one in killed.sla] == ["failure_rate"]
        assert searches(cloud) == []
        done = here.coord("resume", path.name, "--json")

    searched, _ = done.printed["workloads"]
    assert searched["drill"]["left"]["kinds"][0]["kind"] == "servers"
    assert {one["criterion"]: one["success"] for one in searched["sla"]}["drill"]
    found = records(path)
    # the load of the other does not stand still meanwhile
    assert found.index((0, "close")) < found.index((1, "close")) < found.index((0, "left"))
    here.await_nothing_left()


def records(run: Path) -> list[tuple[int, str]]:
    """Workload and name of each record of a run's journal."""
    return [(one.get("workload", -1), one["do"]) for one in RunDirectory(run).decisions()]


def searches(cloud: FakeCloud) -> list[str]:
    return [path for _, path, _ in cloud.seen if path.startswith("/nova/servers/detail")]
