"""Runs that receive spans by OTLP: without a key and a store, mixed with OSProfiler, resumed."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.json_server import serving
from helpers.otlp_service import Service
from helpers.runs import Cluster, Site, site
from helpers.trace_backends import FakeTempo
from servers import RedisServer, free_port
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


#: The service sends its spans every half second, if it gets a core.
LATE = {"otlp_late_s": 10}


@pytest.fixture
def here(fleet: Cluster, guest: Site) -> Site:
    """A site whose runs have a worker."""
    guest.configure(fleet.messaging, {"traces": LATE})
    return guest


@pytest.fixture
def alone() -> Iterator[Site]:
    """A site whose runs are in local mode."""
    with site() as found:
        found.configure({"traces": LATE})
        yield found


@pytest.fixture
def place() -> str:
    """Where spans are received."""
    return f"127.0.0.1:{free_port()}"


def only_run(here: Site) -> Path:
    """The directory of the only run."""
    (found,) = here.data.glob("runs/*")
    return found


def test_what_is_slow_in_a_service_is_named_without_a_key_and_a_store(
    here: Site, place: str
) -> None:
    # a query is in the tutorial (test_traces_run.py), a lock in test_traces_from_run.py
    with Service(here, place, "queue") as service:
        done = here.run(here.task(service.workload()), "--otlp", place)
    explained = here.coord("trace", "explain", "last")

    assert done.code == 0, done.err
    assert f"spans are received by OTLP at http://{place}" in done.err
    (workload,) = done.result["workloads"]
    tracing = workload["tracing"]
    assert (tracing["state"], tracing["traced"]) == ("on", 1200)
    # root and action of each iteration
    assert (tracing["spans_written"], tracing["spans_dropped"]) == (2400, 0)
    assert "waiting for items (from osbench/worker" in tracing["explanation"]
    assert explained.out.splitlines()[0].startswith(tracing["explanation"][:60])
    # three spans of the service in each
    assert "traces: 3,600 spans of this run received by OTLP" in done.result["notes"]
    assert sorted(one.name for one in (only_run(here) / "traces").iterdir()) == [
        *("collection.json", "features", "kept")
    ]
    shown = here.coord("trace", "show", workload["exemplars"][0]["trace_id"]).out
    assert "osbench.iteration" in shown
    assert "GET /items" in shown
    assert "anna" not in shown + explained.out


def test_osprofilers_store_and_otlp_are_merged(here: Site, place: str, redis: RedisServer) -> None:
    with Service(here, place) as service:
        services = {"items": f"http://127.0.0.1:{service.port}"}
        keys = {"profiler_hmac_key": "k", "profiler_conn_str": redis.url}
        here.deployment({"osbench": {"services": services, **keys}}, "shop")
        task = here.task(service.workload(times=100))
        done = here.run(task, "--deployment", "shop", "--otlp", place)

    assert done.code == 0, done.err
    (workload,) = done.result["workloads"]
    assert workload["tracing"]["spans_written"] == 200
    assert "traces: 300 spans of this run received by OTLP" in done.result["notes"]
    rows = json.loads(here.coord("trace", "rank", "last", "--json").out)["ranking"]
    assert {row["service"]: row["count"] for row in rows if row["name"] == "GET /items"} == {
        "items": 100
    }
    assert [row["count"] for row in rows if row["name"] == "osbench.iteration"] == [100]
    # osprofiler finds osbench's own spans as ever
    assert redis.client().keys("osprofiler_opt:*")


def test_a_token_is_needed_and_workers_on_other_hosts_need_no_way_to_the_receiver(
    fleet: Cluster, here: Site, place: str
) -> None:
    settings = {**LATE, "otlp_token": "s3cret-token", "otlp_listen": place}
    here.configure(fleet.messaging, {"traces": settings})
    with Service(here, place, token="s3cret-token") as right, Service(here, place) as wrong:
        task = here.task(right.workload(times=50), wrong.workload(times=50))
        done = here.run(task)

    assert done.code == 0, done.err
    notes = done.result["notes"]
    assert "traces: 150 spans of this run received by OTLP" in notes
    assert any("without the token" in note for note in notes)
    assert "s3cret" not in done.out + done.err
    for path in only_run(here).rglob("*"):
        assert path.is_dir() or b"s3cret-token" not in path.read_bytes(), path
    for workload in done.result["workloads"]:
        assert workload["tracing"]["spans_written"] == 100
        assert workload["exemplars"][0]["trace_id"]
    # nothing of it stays in Redis
    assert not [key for key in fleet.stored() if key.startswith("osprofiler")]


def test_an_address_that_is_taken_ends_the_run_before_it_begins(here: Site) -> None:
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"times": 1}}})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = here.run(task, "--otlp", f"127.0.0.1:{port}")

    assert done.code == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.out
    assert "Traceback" not in done.err


def test_a_killed_coordinator_leaves_no_receiver_and_loses_no_span(alone: Site, place: str) -> None:
    with Service(alone, place) as service:
        task = alone.task(service.workload(times=400, concurrency=2))
        started = alone.begin("osbench-coord", "run", task, "--otlp", place)
        started.await_said("spans are received")
        spool = only_run(alone) / "traces" / "received"
        started.wait_for(lambda: spool.exists() and spool.stat().st_size > 0)
        started.process.kill()
        started.process.wait(PATIENCE_S)
        done = alone.coord("resume", "last", "--json")

    sums = done.sums
    # workers of local mode have two seconds to deliver what they have, which may be too short
    assert sums["ok"] + sums["lost"] == 400
    assert sums["ok"] > 0
    assert done.code == (3 if sums["lost"] else 0), done.err
    (note,) = [one for one in done.result["notes"] if "received by OTLP" in one]
    assert int(note.split()[1].replace(",", "")) > 0


def test_ctrl_c_ends_the_receiver_and_the_queries(alone: Site, place: str) -> None:
    with Service(alone, place) as service, serving(FakeTempo()) as tempo:
        sources = ("--otlp", place, "--traces-from", f"tempo+{tempo.url}")
        task = alone.task(service.workload(times=100_000))
        started = alone.begin("osbench-coord", "run", task, *sources)
        spool = alone.data / "runs"
        started.wait_for(lambda: any(one.stat().st_size for one in spool.glob("*/traces/received")))
        started.interrupt()
        started.await_said("stopping: running iterations end")
        started.interrupt()
        done = started.finish()

    assert done.code == 130
    assert "Traceback" not in done.err
    alone.await_nothing_left()
    assert not list(only_run(alone).glob("traces/received*"))
    assert not list(only_run(alone).glob("traces/queried*"))
