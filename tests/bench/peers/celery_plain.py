"""A plain Celery application: a message an iteration, as one would write it first."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from celery import Celery, signals

app = Celery("plain", broker=os.environ["BENCH_BROKER"])
app.conf.task_ignore_result = True
app.conf.broker_connection_retry_on_startup = True

STARTS: list[float] = []


@app.task
def iterate(number):
    STARTS.append(time.monotonic())


def write(**_):
    """What this process ran: written once, when it ends."""
    if STARTS:
        found = {"count": len(STARTS), "first": min(STARTS), "last": max(STARTS)}
        folder = Path(os.environ["BENCH_FOLDER"])
        (folder / f"worker-{os.getpid()}.json").write_text(json.dumps(found))


signals.worker_process_shutdown.connect(write)
signals.worker_shutdown.connect(write)
