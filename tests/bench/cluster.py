"""A shared Redis with workers started by hand, whose CPU and commands can be counted."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from bench.stage import MARGIN_S, SCENARIOS, BenchError, Stage, last_json
from servers import RedisServer, redis_server

#: Secret that osbench and the peer sign traces with; nothing but loopback ever sees it.
HMAC_KEY = "bench"
#: Commands that the bench itself sends.
_OWN = ("cmdstat_info", "cmdstat_config")


class Cluster:
    """Worker processes that serve run after run."""

    def __init__(self, stage: Stage, redis: RedisServer, traces: RedisServer) -> None:
        self.stage = stage
        self.redis = redis
        self.traces = traces
        self._pids: list[int] = []

    def await_workers(self, count: int) -> None:
        """Wait until so many workers are idle. Raises BenchError."""
        deadline = time.monotonic() + MARGIN_S
        while True:
            listed = last_json(self.stage.coord("workers", "--json"))
            idle = [one for one in listed if one["state"] == "idle" and not one["held_by"]]
            if len(idle) == len(listed) == count:
                self._pids = [int(one["pid"]) for one in listed]
                return
            if time.monotonic() > deadline:
                raise BenchError(f"{len(idle)} of {count} workers are idle")
            time.sleep(0.1)

    def cpu_s(self) -> float:
        """CPU that the worker processes have used so far, seconds."""
        times = [psutil.Process(pid).cpu_times() for pid in self._pids]
        return float(sum(one.user + one.system for one in times))

    def commands(self) -> int:
        """Commands that both servers have run so far, those within scripts too."""
        total = 0
        for server in (self.redis, self.traces):
            with contextlib.closing(server.client()) as client:
                for name, figures in client.info("commandstats").items():
                    total += 0 if name.startswith(_OWN) else figures["calls"]
        return total

    def run(self, workload: Mapping[str, Any], *arguments: str) -> dict[str, Any]:
        """Run a workload on the workers; the trace store holds its traces alone, all of them.

        Raises BenchError where a span was dropped.
        """
        self.stage.forget_runs()
        with contextlib.closing(self.traces.client()) as client:
            client.flushall()
            found = self.stage.run(workload, *arguments)
            one = found["workloads"][0]
            deadline = time.monotonic() + MARGIN_S
            # spans are written aside from the iterations, the last of them after the run
            while client.dbsize() < one["tracing"]["traced"]:
                if time.monotonic() > deadline or one["tracing"]["spans_dropped"]:
                    raise BenchError(f"spans are missing: {one['tracing']}")
                time.sleep(0.02)
        return found


@contextlib.contextmanager
def cluster(stage: Stage, processes: int) -> Iterator[Cluster]:
    """So many workers on a Redis of their own; the deployment in use has a trace store."""
    with redis_server(password="bench") as redis, redis_server() as traces:
        stage.configure(
            messaging={"redis_url": redis.url},
            worker={"trace_queue_spans": 10_000_000, "drain_timeout_s": 5},
            # all traces are counted in the store after the run
            traces={"collect": False},
        )
        stage.coord("keys", "new")
        _create_deployment(stage, traces.url)
        command = [
            *(stage.command("osbench-worker"), "--processes", str(processes)),
            *("--plugin-path", SCENARIOS),
        ]
        found = Cluster(stage, redis, traces)
        with stage.child(command):
            found.await_workers(processes)
            yield found


def _create_deployment(stage: Stage, traces: str) -> None:
    record: Path = stage.subfolder("deployment") / "traced.json"
    platform = {
        "services": {"none": "http://127.0.0.1:9"},
        "profiler_hmac_key": HMAC_KEY,
        "profiler_conn_str": traces,
    }
    record.touch(mode=0o600)
    record.write_text(json.dumps({"osbench": platform}))
    stage.coord("deployment", "create", "--name", "traced", "--file", str(record))
