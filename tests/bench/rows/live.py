"""What a live view costs: CPU of the web server that shows a run to many browsers."""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from bench.comparison import Comparison, Target
from bench.stage import MARGIN_S, BenchError, Stage
from helpers.commands import BIN

NEEDS = ("redis",)

CLIENTS = 50
RATE = 200
#: Blocks that are watched; before, the run goes on for as long, so that there are charts.
LENGTH = 4
TOKEN = "bench-0123456789abcdef"


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """A server of its own, so that all the CPU it takes is that of the live view."""
    shares, sizes = [], []
    for number in range(1, stage.rounds + 1):
        share, size = _round(stage)
        shares.append(share)
        sizes.append(size)
        say(f"round {number}/{stage.rounds}: {share:.2f} % of a core, {size:.1f} kB a second")
    told = ", ".join(f"{size:.1f}" for size in sizes)
    return [
        Comparison(
            row="live",
            title=f"live view of a run at {RATE}/s with {CLIENTS} browsers",
            unit="% of a core",
            osbench=tuple(shares),
            target=Target(bound=2.0, at_most=True),
            note=f"kB a second and browser: {told}",
        )
    ]


def _round(stage: Stage) -> tuple[float, float]:
    seconds = stage.block_s * LENGTH
    stage.configure()
    task = stage.subfolder("task") / "task.json"
    load = {"rps": {"rps": RATE, "times": round(RATE * (2 * seconds + MARGIN_S))}}
    scenario = {"Dummy.dummy": {"sleep": 0.01}}
    subtask = {"title": "watched", "scenario": scenario, "runner": load}
    task.write_text(json.dumps({"version": 2, "title": "bench", "subtasks": [subtask]}))
    with (
        stage.child([BIN / "osbench-coord", "run", "--quiet", str(task)]),
        stage.child(
            [BIN / "osbench-coord", "web", "--listen", "0"], env={"OSBENCH_WEB_TOKEN": TOKEN}
        ) as server,
    ):
        run = _awaited(stage.data)
        port = _port(server.log)
        time.sleep(seconds)
        process = psutil.Process(server.process.pid)
        with _browsers(port, f"/runs/{run}/frames") as browsers:
            # what it takes to open the pages is no part of what watching takes
            _read(browsers, 2.0)
            before, begun = _cpu_s(process), time.monotonic()
            received = _read(browsers, seconds)
            elapsed_s = time.monotonic() - begun
            used_s = _cpu_s(process) - before
    if min(received) < elapsed_s * 200:
        raise BenchError(f"a browser got {min(received)} bytes in {elapsed_s:.0f} s")
    return 100 * used_s / elapsed_s, sum(received) / len(received) / elapsed_s / 1000


def _awaited(data: Path) -> str:
    """The id of the run once it has written results."""
    deadline = time.monotonic() + MARGIN_S
    while time.monotonic() < deadline:
        for timeline in data.glob("runs/*/timeline"):
            return timeline.parent.name
        time.sleep(0.1)
    raise BenchError("the run does not begin")


def _port(log: Path) -> int:
    deadline = time.monotonic() + MARGIN_S
    while time.monotonic() < deadline:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text("utf-8"))
        if found:
            return int(found.group(1))
        time.sleep(0.1)
    raise BenchError("the server does not begin")


@contextlib.contextmanager
def _browsers(port: int, path: str) -> Iterator[list[socket.socket]]:
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(CLIENTS):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(request.encode())
            one.setblocking(False)
            found.append(one)
        yield found


def _read(browsers: list[socket.socket], seconds: float) -> list[int]:
    """Read for a while; returns the bytes that each has got. Raises BenchError."""
    got = dict.fromkeys(browsers, 0)
    with selectors.DefaultSelector() as selector:
        for one in browsers:
            selector.register(one, selectors.EVENT_READ)
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                one = key.fileobj
                assert isinstance(one, socket.socket)
                part = one.recv(1 << 16)
                if not part:
                    raise BenchError("the server has closed a stream")
                got[one] += len(part)
    return list(got.values())


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
