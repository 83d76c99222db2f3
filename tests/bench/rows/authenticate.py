"""Tokens from a real Keystone, for osbench and for Rally: how long, and how many requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench.comparison import Comparison, Target
from bench.copies import note_requests
from bench.loads import Load, load_of
from bench.rally import Rally
from bench.rounds import interleave
from bench.stage import BenchError, Stage, last_json
from osbench.common.config.options import FAST, REQUESTS
from services import operations
from services.lab import Lab
from services.temporary import temporary_lab

NEEDS = ("redis",)

SCENARIO, ACTION = "Authenticate.keystone", "authenticate.keystone"
TIMES, CONCURRENCY = 200, 4
RUNNER = {"constant": {"times": TIMES, "concurrency": CONCURRENCY}}
#: Rounds of the bench for which all arms are measured once: a round takes more than two minutes.
ROUNDS = 3
#: Longest that one load may take, seconds; half a minute is usual.
LIMIT_S = 600.0
#: Whether the deployment has a key: with it, osbench and Rally trace each iteration.
PROFILER = ("off", "on")
RALLY = "Rally"
TRANSPORTS = (FAST, REQUESTS)
#: Scenario, workers, and the most that the load may take beside Rally's.
OURS: Mapping[str, tuple[str, int, float]] = {
    "1 worker": (SCENARIO, 1, 1.0),
    "2 workers": (SCENARIO, 2, 1.0),
    # the same requests take the same time, give or take what Keystone's time varies by
    "2 workers, Rally's own plug-in": (f"{SCENARIO}@rally", 2, 1.05),
}


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Keystone answers one request at a time, so that it decides how long the load takes."""
    loads: dict[tuple[str, str], list[Load]] = {}
    with temporary_lab() as lab:
        operations.start(lab, ["keystone"])
        notes = note_requests(lab, "keystone")
        rally = Rally(stage, LIMIT_S)
        for profiler in PROFILER:
            rally.create(profiler, {"existing@openstack": _cloud(lab, profiler)})
        for number in range(max(1, stage.rounds // ROUNDS)):
            for profiler in PROFILER:
                arms: dict[str, Callable[[], dict[str, Any]]] = {
                    name: partial(_osbench, stage, _cloud(lab, profiler), scenario, workers)
                    for name, (scenario, workers, _) in OURS.items()
                }
                arms[RALLY] = partial(rally.workload, SCENARIO, RUNNER, profiler)
                for name, arm in arms.items():
                    found = load_of(arm(), ACTION, _instants(notes))
                    if found.iterations != TIMES:
                        raise BenchError(f"{name}: {found.iterations} of {TIMES} iterations")
                    loads.setdefault((name, profiler), []).append(found)
                    say(f"round {number + 1}, {name}, profiler {profiler}: {_told(found)}")
        cpu = interleave(
            {name: partial(_cpu, stage, _cloud(lab, "off"), name) for name in TRANSPORTS},
            max(1, stage.rounds // ROUNDS),
            say,
        )
    return [
        Comparison(
            row="authenticate",
            title=f"{TIMES} x {SCENARIO}, 1 worker: CPU of the worker for an iteration",
            unit="us",
            osbench=cpu[FAST],
            peer_name=f"openstack_transport = {REQUESTS}",
            peer=cpu[REQUESTS],
            target=Target(bound=1 / 3, at_most=True),
        ),
        *(
            one
            for profiler in PROFILER
            for name, (*_, bound) in OURS.items()
            for one in _comparisons(
                f"{TIMES} x {SCENARIO}, {name}, profiler {profiler}",
                loads[name, profiler],
                loads[RALLY, profiler],
                bound,
            )
        ),
    ]


def _comparisons(
    title: str, ours: list[Load], theirs: list[Load], bound: float
) -> list[Comparison]:
    def line(
        what: str, unit: str, value: Callable[[Load], float], bound: float, note: str = ""
    ) -> Comparison:
        return Comparison(
            row="authenticate",
            title=f"{title}: {what}",
            unit=unit,
            osbench=tuple(map(value, ours)),
            peer_name=f"{RALLY}, concurrency {CONCURRENCY}",
            peer=tuple(map(value, theirs)),
            target=Target(bound=bound, at_most=True),
            note=note,
        )

    latency = f"{ACTION}: {_latency(ours[-1])}; {RALLY}: {_latency(theirs[-1])}"
    return [
        line("load", "s", lambda load: load.duration_s, bound, latency),
        line("an iteration", "requests", lambda load: load.requests / load.iterations, 1.0),
    ]


def _cpu(stage: Stage, cloud: Mapping[str, Any], transport: str) -> dict[str, float]:
    found = _run(stage, cloud, SCENARIO, 1, worker={"openstack_transport": transport})
    (workload,) = found["workloads"]
    cores = sum(one["cpu_mean"] for one in workload["workers"])
    return {transport: cores / workload["throughput"]["ok_per_s"] * 1e6}


def _osbench(stage: Stage, cloud: Mapping[str, Any], scenario: str, workers: int) -> dict[str, Any]:
    _run(stage, cloud, scenario, workers)
    (task,) = last_json(stage.coord("results", "last", "--rally-json"))["tasks"]
    found: dict[str, Any] = task["subtasks"][0]["workloads"][0]
    return found


def _run(
    stage: Stage, cloud: Mapping[str, Any], scenario: str, workers: int, **sections: Any
) -> dict[str, Any]:
    stage.configure(traces={"collect": False}, **sections)
    record = stage.subfolder("deployment") / "cloud.json"
    record.touch(mode=0o600)
    record.write_text(json.dumps({"openstack": cloud}))
    stage.coord("deployment", "create", "--name", "cloud", "--file", str(record))
    workload = {"scenario": {scenario: {}}, "runner": RUNNER}
    return stage.run(workload, *("--workers", str(workers)), within_s=LIMIT_S)


def _cloud(lab: Lab, profiler: str) -> dict[str, Any]:
    cloud: Any = lab.deployment()["openstack"]
    keys = ("profiler_hmac_key", "profiler_conn_str")
    return {name: value for name, value in cloud.items() if profiler == "on" or name not in keys}


def _instants(notes: Path) -> list[float]:
    return [float(line) for line in notes.read_text().split()]


def _latency(load: Load) -> str:
    return f"p50 {load.p50_ms:.0f}, p95 {load.p95_ms:.0f} ms"


def _told(load: Load) -> str:
    return f"{load.duration_s:.2f} s, {load.requests} requests, {_latency(load)}"
