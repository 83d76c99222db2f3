"""The command of `make stream-truth`: streams read by osbench, and by a client that only logs.

Each round starts a server that sends every event to two clients at once: to osbench's client of
threads or of an event loop, and to a loop of `recv` that notes when bytes came. Both note times of
one clock, so that the arrivals of the same event can be subtracted. The first row compares two
clients that only log: the noise of the machine. As root all processes run before others
(SCHED_FIFO), and a busy machine is less noisy.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from typing import Any

import click

from helpers.driven import DRIVERS
from helpers.streaming import CHUNKED, LAST, chunk, recorded, streaming
from osbench.common.plugin.scenario import Scenario
from osbench.common.values.histogram import Histogram

#: Most that the two may differ by at the 99th percentile, ns.
_ALLOWED_NS = 1_000_000
#: Stands for a client that only logs, among the kinds of osbench's.
_LOGGER = "logger"
_REQUEST = b"GET /chat HTTP/1.1\r\nHost: logged\r\n\r\n"


def send_to_both(listener: socket.socket, events: int, seed: int) -> None:
    """Accept two connections, read their requests, and send each event to both."""
    chance = random.Random(seed)
    connections = [listener.accept()[0] for _ in range(2)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.recv(65536)
        connection.sendall(CHUNKED)
    for number in range(events):
        time.sleep(chance.uniform(0.001, 0.01))
        # none is always the first
        chance.shuffle(connections)
        for connection in connections:
            connection.sendall(chunk(f"data: {number}\n\n".encode()))
    for connection in connections:
        connection.sendall(LAST)


def hurry() -> None:
    """Run this process and its children before all others, if that is allowed."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def logged(port: int) -> list[int]:
    """Return when each event came, monotonic ns, by a client that does nothing else."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(_REQUEST)
        times: list[int] = []
        received = b""
        while not received.endswith(LAST):
            data = connection.recv(65536)
            now_ns = time.monotonic_ns()
            received = received[-8:] + data
            times += [now_ns] * data.count(b"\n\n")
    return times


def measured(port: int, kind: str) -> list[int]:
    """Return when each event came, monotonic ns, as osbench records it."""
    iteration = Scenario({})
    with streaming(kind) as client:
        client.read(f"http://127.0.0.1:{port}/chat", {"events": "sse"}, iteration, timeout=600)
    return [one.ended_ns for one in recorded(iteration)[1:]]


@click.group(invoke_without_command=True)
@click.option("--events", default=2000, show_default=True, help="Events of each stream.")
@click.option("--seed", default=lambda: random.randrange(10**6), help="Of the times of events.")
@click.pass_context
def main(context: click.Context, events: int, seed: int) -> None:
    """Compare osbench's times of events with those of a client that only logs them.

    A row for each kind of client: differences of arrivals, and of the times between events. The
    exit code is 1 if the 99th percentile of either is above 1 ms.
    """
    if context.invoked_subcommand:
        return
    click.echo(f"seed {seed}, {events:,} events for each client")
    hurry()
    compare(_LOGGER, events, seed)
    late = [kind for kind in DRIVERS if not compare(kind, events, seed)]
    sys.exit(1 if late else 0)


@main.command()
@click.argument("port", type=int)
def log(port: int) -> None:
    """Print the times of the client that only logs."""
    click.echo(json.dumps(logged(port)))


@main.command()
@click.argument("port", type=int)
@click.argument("kind")
def measure(port: int, kind: str) -> None:
    """Print the times of osbench's client."""
    click.echo(json.dumps(measured(port, kind)))


def compare(kind: str, events: int, seed: int) -> bool:
    """Play a round and print its row; return whether the clients agree."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        first = ("log", port) if kind == _LOGGER else ("measure", port, kind)
        clients = [_client(*first), _client("log", port)]
        send_to_both(listener, events, seed)
        ours, theirs = (json.loads(one.communicate(timeout=60)[0]) for one in clients)
    if not len(ours) == len(theirs) == events:
        click.echo(f"{kind}: {len(ours)} events, logged {len(theirs)}, sent {events}")
        return False
    arrivals = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    between = [
        abs((ours[at] - ours[at - 1]) - (theirs[at] - theirs[at - 1])) for at in range(1, events)
    ]
    click.echo(f"{kind:8} arrivals differ by {_shown(arrivals)}")
    click.echo(f"{'':8} times between events by {_shown(between)}")
    return all(Histogram.of(one).percentile(99) <= _ALLOWED_NS for one in (arrivals, between))


def _client(*words: str) -> subprocess.Popen[Any]:
    command = [sys.executable, "-m", "truth.streams", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _shown(differences: list[int]) -> str:
    found = Histogram.of(differences)
    p50, p99, most = (found.percentile(percent) / 1000 for percent in (50, 99, 100))
    within = 100 * (1 - found.count_above(_ALLOWED_NS) / found.count)
    times = f"{p50:.0f} us at p50, {p99:.0f} us at p99, {most:.0f} us at most"
    return f"{times}; {within:.4g} % within 1 ms"


if __name__ == "__main__":
    main()
