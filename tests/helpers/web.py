"""A web server over a data directory of the test, and a coordinator to be aborted."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from helpers.runs import Started
from osbench.common.network.address import Address
from osbench.coordinator.storage.progress import Snapshot, WorkerProgress
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.run_store import RunStore
from osbench.coordinator.web.access_tokens import AccessTokens
from osbench.coordinator.web.run_starts import RunStarts
from osbench.coordinator.web.runs_shown import RunsShown
from osbench.coordinator.web.web_server import WebServer

TOKENS = AccessTokens(token="full-0123456789abcdef", read_token="read-0123456789abcdef")

#: Holds a run until it is asked to end, as a coordinator does.
_HOLDER = """
import sys, threading
from pathlib import Path
from osbench.coordinator.storage.control_requests import AbortWatch
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.run_store import RunStore
run, over = RunDirectory(Path(sys.argv[1])), threading.Event()
run.lock()
with AbortWatch(run, lambda now: over.set()):
    print("held", flush=True)
    over.wait()
    print("interrupted", flush=True)
"""


def make_run(data: Path, name: str, task: str = "A task", **summary: object) -> RunDirectory:
    """A run that nobody coordinates any more; finished where it has a summary."""
    run = RunDirectory.create(str(data), name)
    manifest = {"run_id": name, "task": task, "description": "", "tags": [], "workloads": []}
    run.write("run.json", {**manifest, "started_at": time.time()})
    if summary:
        run.write("summary.json", dict(summary))
    run.close()
    return run


def worker_progress(name: str = "host-a:7", **fields: object) -> WorkerProgress:
    """A worker that runs."""
    usual: dict[str, object] = {"label": "", "state": "running", "users": 4, "busy": 2}
    usual |= {"rate": 12.5, "cpu": 0.25, "lag_p99_s": 0.001}
    return WorkerProgress(name=name, **{**usual, **fields})  # type: ignore[arg-type]


def snapshot(**fields: object) -> Snapshot:
    """A workload under load."""
    usual: dict[str, object] = {"workload": 0, "name": "A.b", "phase": "running", "elapsed_s": 3.0}
    usual |= {
        "planned": 100,
        "settled": 40,
        "dropped": 0,
        "ok": 39,
        "failed": 1,
        "busy": 2,
        "workers": 1,
    }
    return Snapshot(**{**usual, "away": "", **fields})  # type: ignore[arg-type]


@contextlib.contextmanager
def serving(
    data: Path,
    only: str = "",
    names: tuple[str, ...] = (),
    starts: RunStarts | None = None,
    archive: RunStore | None = None,
) -> Iterator[WebServer]:
    """A server on a port that is free."""
    shown = RunsShown(str(data), only, stays=not only, archive=archive)
    with WebServer(shown, TOKENS, Address.parse("0"), names, starts) as server:
        yield server


@contextlib.contextmanager
def held(run: RunDirectory) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a run until it is asked to end."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(run.path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def printed_address(command: Started) -> str:
    """The address of the live view that a command has printed."""
    command.await_said("?token=")
    found = re.search(r"http://\S+\?token=\S+", command.said())
    assert found
    return found.group()
