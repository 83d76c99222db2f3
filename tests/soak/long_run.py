"""A run on workers of its own that lasts as long as is asked for."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.stage import MARGIN_S, BenchError, Stage, last_json
from helpers.commands import BIN
from helpers.import_path import import_path
from osbench.common.protocol import redis_keys
from servers import Child, RedisServer, redis_server

#: Worker processes, and virtual users of the closed part.
WORKERS = 2
USERS = 4
#: Share of the open part's iterations that fail.
FAILING = 0.01
FASTER = Path(__file__).resolve().parent / "faster"


@dataclass(frozen=True, kw_only=True)
class LongRun:
    """A run under way."""

    redis: RedisServer
    run_id: str
    #: Process ids by name.
    processes: dict[str, int]
    _command: Child

    @property
    def stream(self) -> str:
        """The key of its result stream."""
        return redis_keys.run(self.run_id, "results")

    @property
    def under_way(self) -> bool:
        """It has not ended."""
        return self._command.process.poll() is None

    def result(self) -> dict[str, Any]:
        """The object that it printed. Raises BenchError where it has not ended well."""
        code = self._command.process.wait(MARGIN_S * 2)
        # 4: on a busy machine iterations start late, which is not what is tested
        if code not in (0, 4):
            raise BenchError(f"the run ended with {code}\n{self._command.tail()[-2000:]}")
        found: dict[str, Any] = last_json(self._command.log.read_text("utf-8", errors="replace"))
        return found


@contextlib.contextmanager
def long_run(stage: Stage, seconds: float, rate: float, speed: float) -> Iterator[LongRun]:
    """An open and a closed workload at once, on a Redis and two workers of their own.

    `rate` is that of the open workload and about that of the closed one, iterations a second.
    """
    env = {**import_path(FASTER), "OSBENCH_SOAK_SPEED": str(speed)} if speed != 1 else {}
    with redis_server(password="soak") as server:
        stage.configure(messaging={"redis_url": server.url})
        stage.coord("keys", "new")
        workers = [BIN / "osbench-worker", "--processes", str(WORKERS)]
        task = stage.subfolder("task") / "task.json"
        task.write_text(json.dumps(_task(seconds, rate)), encoding="utf-8")
        run = [BIN / "osbench-coord", "run", task, "--quiet", "--json", "--workers", str(WORKERS)]
        with stage.child(workers, env=env) as supervisor:
            _await_workers(stage)
            with stage.child(run, env=env) as command:
                run_id = _await_load(stage, command)
                yield LongRun(
                    redis=server,
                    run_id=run_id,
                    processes=_processes(command, supervisor),
                    _command=command,
                )


def _task(seconds: float, rate: float) -> dict[str, Any]:
    times = max(1, round(rate * seconds))
    failing = {
        "scenario": {"Dummy.dummy_random_fail_in_atomic": {"exception_probability": FAILING}},
        "sla": {"failure_rate": {"max": 1000 * FAILING}},
    }
    sleeping = {"scenario": {"Dummy.dummy": {"sleep": USERS / rate}}}
    workloads = [
        failing | {"runner": {"rps": {"rps": rate, "times": times}}},
        sleeping
        | {"runner": {"constant_for_duration": {"duration": seconds, "concurrency": USERS}}},
    ]
    both = {"title": "both at once", "run_in_parallel": True, "workloads": workloads}
    return {"version": 2, "title": "a long run", "subtasks": [both]}


def _await_workers(stage: Stage) -> None:
    deadline = time.monotonic() + MARGIN_S
    while len(last_json(stage.coord("workers", "--json", codes=(0, 1)))) < WORKERS:
        if time.monotonic() > deadline:
            raise BenchError("the workers have not come")
        time.sleep(0.2)


def _await_load(stage: Stage, command: Child) -> str:
    """The id of the run, once its load has begun."""
    journals = stage.data / "runs"
    deadline = time.monotonic() + MARGIN_S
    while True:
        for path in journals.glob("*/blocks"):
            if path.stat().st_size:
                return path.parent.name
        if command.process.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"the load has not begun\n{command.tail()}")
        time.sleep(0.1)


def _processes(command: Child, supervisor: Child) -> dict[str, int]:
    found = {"coordinator": command.process.pid, "supervisor": supervisor.process.pid}
    children = psutil.Process(supervisor.process.pid).children()
    for number, child in enumerate(sorted(children, key=lambda one: one.pid), 1):
        found[f"worker {number}"] = child.pid
    return found
