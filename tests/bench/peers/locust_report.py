"""Writes what a Locust run achieved: the master its failures, each worker time, CPU and count."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from locust import events
from locust.runners import MasterRunner, WorkerRunner

FOLDER = Path(os.environ["BENCH_FOLDER"])
STATE = {"cpu": 0.0, "wall": 0.0, "count": 0}


@events.test_start.add_listener
def began(environment, **_):
    if isinstance(environment.runner, WorkerRunner):
        STATE.update(cpu=time.process_time(), wall=time.monotonic(), count=0)


@events.init.add_listener
def listen_last(environment, **_):
    # Locust's own listener puts the counts since the last report into the data: after it
    environment.events.report_to_master.add_listener(reported)


def reported(data, **_):
    total = data.get("stats_total")
    if total:
        STATE["count"] += total["num_requests"]


@events.test_stop.add_listener
def ended(environment, **_):
    if isinstance(environment.runner, WorkerRunner):
        cpu_s = time.process_time() - STATE["cpu"]
        wall_s = time.monotonic() - STATE["wall"]
        count = STATE["count"] + environment.runner.stats.total.num_requests
        path = FOLDER / f"worker-{os.getpid()}.json"
        path.write_text(json.dumps({"cpu_s": cpu_s, "wall_s": wall_s, "count": count}))


@events.quitting.add_listener
def left(environment, **_):
    if isinstance(environment.runner, MasterRunner):
        total = environment.stats.total
        found = {"count": total.num_requests, "failures": total.num_failures}
        (FOLDER / "master.json").write_text(json.dumps(found))
