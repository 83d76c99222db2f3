"""A worker or the master is killed under load: what no report accounts for, and how long it takes.

Both sides have two workers and eight users on each of them, and ask a server that answers after
20 ms and writes down each request. osbench's coordinator is resumed; Locust has nothing like it.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import MARGIN_S, PEERS, WORKERS, BenchError, Stage
from helpers.arena import Arena, Load, arena, wait_until
from servers import Child, free_port
from servers.iteration_log import IterationLog, Line, iteration_log

NEEDS = ("redis",)

USERS = 16
ANSWER_MS = 20
#: Seconds of load before something is killed, and behind that at least.
BEFORE_S = 4.5
AFTER_S = 12.0
#: The rate is back where half a second has this share of the rate before.
BACK = 0.9
_BIN_S = 0.5


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Worker killed and master killed, osbench and Locust in turn."""
    arms = {
        "osbench, worker": lambda: _osbench_worker(stage),
        "Locust, worker": lambda: _locust(stage, "worker"),
        "osbench, coordinator": lambda: _osbench_coordinator(stage),
        "Locust, master": lambda: _locust(stage, "master"),
    }
    values = interleave(arms, stage.rounds, say)
    locust = f"Locust, {WORKERS} workers"
    return [
        Comparison(
            row="killed",
            title="worker killed: requests that the server saw and no state of the report holds",
            unit="requests",
            osbench=values["ours unaccounted"],
            peer_name=locust,
            peer=values["theirs unaccounted worker"],
            target=Target(bound=0.0, at_most=True),
            note=f"osbench tells {median(values['ours lost']):,.0f} as lost",
        ),
        Comparison(
            row="killed",
            title=f"worker killed: until {BACK:.0%} of the rate is back",
            unit="s",
            osbench=values["ours back"],
            peer_name=locust,
            peer=values["theirs back worker"],
        ),
        Comparison(
            row="killed",
            title="coordinator or master killed: requests that no report accounts for",
            unit="requests",
            osbench=values["ours unaccounted, resumed"],
            peer_name=locust,
            peer=values["theirs unaccounted master"],
            target=Target(bound=0.0, at_most=True),
            note=f"osbench tells {median(values['ours lost, resumed']):,.0f} as lost, resumed",
        ),
    ]


def _osbench_worker(stage: Stage) -> dict[str, float]:
    with _loaded(stage) as (found, load):
        found.hosts[0].signal_process(signal.SIGKILL)
        killed = time.monotonic()
        found.finish(load)
        unaccounted, lost = _unaccounted(found, load)
        back_s = _back_s([line for line in found.log.lines() if line.run == load.run], killed)
    return {"ours unaccounted": unaccounted, "ours lost": lost, "ours back": back_s}


def _osbench_coordinator(stage: Stage) -> dict[str, float]:
    with _loaded(stage) as (found, load):
        load.signal(signal.SIGKILL)
        found.resume(load)
        found.finish(load)
        unaccounted, lost = _unaccounted(found, load)
    return {"ours unaccounted, resumed": unaccounted, "ours lost, resumed": lost}


@contextlib.contextmanager
def _loaded(stage: Stage) -> Iterator[tuple[Arena, Load]]:
    """A run that has been under load for a while."""
    seconds = max(stage.block_s * 2, BEFORE_S + AFTER_S)
    with arena() as found:
        found.start_hosts(WORKERS)
        runner = {"constant_for_duration": {"duration": seconds, "concurrency": USERS}}
        load = found.start_load(runner, answer_ms=ANSWER_MS)
        found.await_started(load)
        time.sleep(BEFORE_S)
        yield found, load


def _unaccounted(found: Arena, load: Load) -> tuple[float, float]:
    """Requests that no state of the report holds, and those that it tells as lost."""
    sums = found.told(load, found.summary(load))[0].accounting
    told = sums["ok"] + sums["failed"] + sums["timed_out"] + sums["lost"]
    return float(max(0, found.seen(load).starts.total() - told)), float(sums["lost"])


def _locust(stage: Stage, victim: str) -> dict[str, float]:
    folder = stage.subfolder("locust")
    with iteration_log(folder) as log:
        seconds = max(stage.block_s * 2, BEFORE_S + AFTER_S)
        with _cluster(stage, log, seconds) as processes:
            if not wait_until(lambda: log.size, MARGIN_S):
                raise BenchError(f"Locust starts no load\n{processes[0].tail()}")
            time.sleep(BEFORE_S)
            killed = time.monotonic()
            processes[victim == "worker"].process.kill()
            report = log.folder / "master.json"
            # workers without a master go on: they end with the block
            ended = processes[0].process if victim == "worker" else None
            wait_until(
                lambda: ended is not None and ended.poll() is not None,
                MARGIN_S if ended else seconds - BEFORE_S,
            )
        reported = json.loads(report.read_text())["count"] if report.exists() else 0
        lines = log.lines()
    seen = sum(not line.answered for line in lines)
    return {
        f"theirs unaccounted {victim}": float(max(0, seen - reported)),
        f"theirs back {victim}": _back_s(lines, killed),
    }


@contextlib.contextmanager
def _cluster(stage: Stage, log: IterationLog, seconds: float) -> Iterator[list[Child]]:
    """A master and its workers, as processes that can be killed one by one."""
    port = str(free_port())
    common: list[str | Path] = [
        stage.peers.parent / "locust",
        *("--locustfile", PEERS / "locust_log.py", "--loglevel", "WARNING"),
    ]
    master: list[str | Path] = [
        *(*common, "--master", "--headless", "--only-summary", "--enable-rebalancing"),
        *("--expect-workers", str(WORKERS), "--users", str(USERS), "--spawn-rate", str(USERS)),
        *("--run-time", f"{round(seconds)}s", "--stop-timeout", "2"),
        *("--master-bind-host", "127.0.0.1", "--master-bind-port", port),
    ]
    worker: list[str | Path] = [
        *common,
        "--worker",
        "--master-host",
        "127.0.0.1",
        "--master-port",
        port,
    ]
    env = {"BENCH_FOLDER": str(log.folder), "BENCH_URL": log.url("locust", ANSWER_MS)}
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(stage.child(command, cwd=PEERS, env=env))
            for command in (master, *[worker] * WORKERS)
        ]


def _back_s(lines: list[Line], killed: float) -> float:
    """Seconds from `killed` until a bin has `BACK` of the rate before, else to the last start."""
    starts = [line.at for line in lines if not line.answered]
    before = sum(killed - 2.0 <= at < killed for at in starts) / 2.0
    last = max(starts, default=killed)
    bins = int((last - killed) / _BIN_S)
    for number in range(1, bins):
        begin = killed + number * _BIN_S
        if sum(begin <= at < begin + _BIN_S for at in starts) >= BACK * before * _BIN_S:
            return number * _BIN_S
    return last - killed
