"""Locust, headless, one master and as many workers as osbench has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.stage import MARGIN_S, PEERS, WORKERS, BenchError, Stage
from servers import free_port


@dataclass(frozen=True, kw_only=True)
class LocustRun:
    """What a Locust run achieved."""

    #: Iterations a second, from the workers' first spawn to their stop.
    rate: float
    #: CPU of the workers per iteration, microseconds.
    cpu_us: float


def run_locust(
    stage: Stage,
    locustfile: str,
    users: int,
    seconds: float,
    env: Mapping[str, str] | None = None,
) -> LocustRun:
    """Run a locustfile of `peers` with `users` users. Raises BenchError where requests failed."""
    folder = finish_locust(stage, locustfile, users, seconds, env)
    workers = [json.loads(path.read_text()) for path in folder.glob("worker-*.json")]
    iterations = sum(worker["count"] for worker in workers)
    if len(workers) != WORKERS or not iterations:
        raise BenchError(f"Locust did not run as it must: {workers}")
    wall_s = max(worker["wall_s"] for worker in workers)
    cpu_s = sum(worker["cpu_s"] for worker in workers)
    return LocustRun(rate=iterations / wall_s, cpu_us=cpu_s / iterations * 1e6)


def finish_locust(
    stage: Stage,
    locustfile: str,
    users: int,
    seconds: float,
    env: Mapping[str, str] | None = None,
    *,
    spawn_rate: int | None = None,
) -> Path:
    """Run a locustfile; returns the folder with what the master wrote, and workers in time.

    Raises BenchError where requests failed.
    """
    folder = stage.subfolder("locust")
    port = str(free_port())
    stage.finish(
        [
            stage.peers.parent / "locust",
            *("--locustfile", PEERS / locustfile),
            *("--headless", "--processes", str(WORKERS)),
            *("--users", str(users), "--spawn-rate", str(spawn_rate or users)),
            *("--run-time", f"{max(1, round(seconds))}s", "--stop-timeout", "2"),
            *("--master-bind-host", "127.0.0.1", "--master-bind-port", port),
            *("--master-port", port, "--only-summary", "--loglevel", "WARNING"),
        ],
        within_s=seconds + MARGIN_S,
        cwd=PEERS,
        env={**(env or {}), "BENCH_FOLDER": str(folder)},
    )
    master = json.loads((folder / "master.json").read_text())
    if not master["count"] or master["failures"]:
        raise BenchError(f"Locust did not run as it must: {master}")
    return folder
