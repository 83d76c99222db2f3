"""Spans that Nova writes into the wrong traces are found: many on native threads, few on eventlet.

Nova's daemons take calls with threads of a pool, and a thread keeps the first trace that it has
seen (docs/lab.md). On eventlet each call has a thread of its own. The daemons are fresh before each
run, so that the traces that their threads keep are the run's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from helpers.runs import Site, site
from services import operations
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1800)]

BOOTS = 8
#: Those that take calls from a queue; Nova's API is served by waitress either way.
DAEMONS = ("nova-conductor", "nova-scheduler", "nova-compute")


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def lab(own_nova: Lab, here: Site) -> Lab:
    """The lab, known to osbench."""
    here.deployment(own_nova.deployment())
    return own_nova


@pytest.fixture(scope="module")
def found(here: Site, lab: Lab) -> dict[str, dict[str, Any]]:
    """What `trace explain` says of boots with each kind of threads."""
    # In this order: the lab has just started with the first of them.
    return {backend: explained(here, lab, backend) for backend in ("threading", "eventlet")}


def explained(here: Site, lab: Lab, backend: str) -> dict[str, Any]:
    """What `trace explain` says of a run of boots, Nova's daemons having such threads."""
    lab.options = replace(lab.options, nova_backend=backend)
    operations.start(lab, ["nova"])
    server = {"image": {"name": "lab-image"}, "flavor": {"name": "m1.tiny"}, "nics": "none"}
    task = here.task(
        {
            "scenario": {"NovaServers.boot_and_delete_server": server},
            "runner": {"constant": {"times": BOOTS, "concurrency": 2}},
        }
    )
    done = here.start("osbench-coord", "run", "--json", task, "--workers", "1").finish(900.0)
    assert done.code == 0, done.err
    assert done.sums["ok"] == BOOTS
    ranked = here.coord("trace", "rank", done.result["run_id"])
    printed = here.coord("trace", "explain", done.result["run_id"], "--json")
    assert printed.code == 0, printed.err
    return {**json.loads(printed.out), "printed": ranked.out}


def share(found: dict[str, Any]) -> float:
    """The part of the daemons' spans that was left out as not of the trace that they are in."""
    services = found["census"]["services"]
    of_daemons = [services[name] for name in DAEMONS]
    left_out = sum(spans["stale"] + spans["orphan"] for spans in of_daemons)
    return left_out / sum(spans["count"] for spans in of_daemons)


def test_the_daemons_are_in_the_traces(found: dict[str, dict[str, Any]]) -> None:
    for backend, one in found.items():
        print(backend, {name: one["census"]["services"].get(name) for name in DAEMONS})
        print(one["printed"][-1500:])
        assert set(one["census"]["services"]) >= set(DAEMONS)
        assert one["census"]["traces"] == BOOTS


def test_on_eventlet_next_to_nothing_is_left_out(found: dict[str, dict[str, Any]]) -> None:
    assert share(found["eventlet"]) < 0.02


def test_on_native_threads_much_is_left_out(found: dict[str, dict[str, Any]]) -> None:
    assert share(found["threading"]) > 0.1
    assert "written into traces that its threads had kept" in found["threading"]["printed"]
