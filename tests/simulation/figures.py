"""What a simulated run costs the processes that share it: CPU, memory, traffic of Redis, lag."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import psutil
import redis

from bench.stage import MARGIN_S, SCENARIOS, BenchError, Stage, last_json
from helpers.commands import BIN
from helpers.import_path import TESTS, import_path
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline
from servers import Child, RedisServer, redis_server

#: Simulated workers of a process, at most.
EACH = 50
#: What is left out at the beginning and at the end of a load, seconds.
EDGE_S = 1.5
#: Of coordinator and Redis, and of simulated workers, where that is allowed.
PRIORITY, PRIORITY_OF_WORKERS = -15, -10
#: Between two looks at the length of the result stream, or for workers, seconds.
LOOK_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Figures:
    """A run; what goes by the second is that of the middle of its load."""

    workers: int
    #: Iterations a second that were offered, and how many of the run came out well.
    rate: float
    ok: int
    #: CPU seconds a second.
    coordinator_cpu: float
    redis_cpu: float
    workers_cpu: float
    #: Resident memory at the end of the load, MB.
    coordinator_mb: float
    redis_mb: float
    #: Of Redis, a second.
    commands_per_s: float
    blocks_per_s: float
    in_bytes_per_s: float
    out_bytes_per_s: float
    #: Most entries that waited in the result stream.
    waiting_most: int
    #: For how long workers did not hear the coordinator: median, 99th percentile, most, seconds.
    unheard_s: tuple[float, float, float]
    #: From the beginning of the run to the start of its load, and from the end of the load to the
    #: report, seconds.
    start_s: float
    end_s: float
    #: Keys of Redis when run and workers were gone.
    keys_left: int


@dataclass(frozen=True, kw_only=True)
class _Counters:
    at: float
    coordinator: float
    redis: float
    workers: float
    info: dict[str, float]
    blocks: int


def simulate(
    stage: Stage, workers: int, runner: dict[str, Any], seconds: float, *options: str
) -> Figures:
    """Run a load of `seconds` on simulated workers with a Redis of their own. Raises BenchError."""
    with redis_server(password="simulation") as server:
        stage.configure(messaging={"redis_url": server.url}, coordinator={"wait_for_workers_s": 60})
        stage.coord("keys", "new")
        outputs = []
        with contextlib.ExitStack() as stack:
            processes = []
            for count in _shares(workers):
                output = stage.subfolder("seen") / "seen.json"
                outputs.append(output)
                processes.append(stack.enter_context(_workers(stage, count, output)))
            _await_workers(stage, server, workers)
            found = _measured(stage, server, workers, runner, seconds, processes, options)
        seen = [json.loads(output.read_text("utf-8"))["unheard_s"] for output in outputs]
        unheard = tuple(max(one[at] for one in seen) for at in range(3))
        with contextlib.closing(server.client()) as client:
            keys = [key for key in client.scan_iter(count=1000) if b":ctl:" not in key]
        return Figures(**found, unheard_s=cast(Any, unheard), keys_left=len(keys))


def _shares(workers: int) -> Iterator[int]:
    while workers > 0:
        yield min(workers, EACH)
        workers -= EACH


@contextlib.contextmanager
def _workers(stage: Stage, count: int, output: Path) -> Iterator[Child]:
    command = [
        *(sys.executable, "-m", "simulation", "--workers", str(count)),
        *("--config-file", stage.data / "osbench.conf", "--plugin-path", SCENARIOS),
        *("--output", output),
    ]
    with stage.child(command, env=import_path(TESTS)) as child:
        prefer(PRIORITY_OF_WORKERS, psutil.Process(child.process.pid))
        yield child


def _await_workers(stage: Stage, server: RedisServer, count: int) -> None:
    deadline = time.monotonic() + MARGIN_S
    with contextlib.closing(server.client()) as client:
        # as `workers` reads them, without a process for each look
        reader = HeartbeatReader(client, Signer(Keyring.load(stage.data / "keys")))
        while len(present := reader.present()) != count:
            if time.monotonic() > deadline:
                raise BenchError(f"{len(present)} of {count} workers have come")
            time.sleep(LOOK_S)


def _measured(
    stage: Stage,
    server: RedisServer,
    workers: int,
    runner: dict[str, Any],
    seconds: float,
    processes: list[Child],
    options: tuple[str, ...],
) -> dict[str, Any]:
    stage.forget_runs()
    task = stage.subfolder("task") / "task.json"
    workload = {"title": "simulated", "scenario": {"Bench.action": {}}, "runner": runner}
    task.write_text(json.dumps({"version": 2, "title": "simulated", "subtasks": [workload]}))
    command = [
        *(BIN / "osbench-coord", "run", task, "--quiet", "--json", "--workers", str(workers)),
        *("--plugin-path", SCENARIOS, *options),
    ]
    with stage.child(command) as child, contextlib.closing(server.client()) as client:
        coordinator = psutil.Process(child.process.pid)
        prefer(PRIORITY, coordinator, psutil.Process(server.pid))
        run_id = _await_load(stage, child)
        others = [psutil.Process(one.process.pid) for one in processes]
        time.sleep(EDGE_S)
        before = _counters(coordinator, psutil.Process(server.pid), others, client)
        waiting = 0
        while time.monotonic() < before.at + seconds - 2 * EDGE_S:
            time.sleep(LOOK_S)
            waiting = max(waiting, cast(int, client.xlen(redis_keys.run(run_id, "results"))))
        after = _counters(coordinator, psutil.Process(server.pid), others, client)
        memory = coordinator.memory_info().rss / 1e6
        code = child.process.wait(MARGIN_S * 2)
        said = child.log.read_text("utf-8", errors="replace")
    if code not in (0, 4):
        raise BenchError(f"the run ended with {code}\n{said[-2000:]}")
    report = last_json(said)
    result = report["workloads"][0]
    sums = result["accounting"]
    if sums["ok"] != sums["planned"]:
        raise BenchError(f"not every iteration was ok: {sums}")
    timeline = read_timeline(RunDirectory(stage.data / "runs" / run_id))
    assert timeline is not None
    t0_at = timeline["workloads"][0]["t0_at"]
    return _figures(before, after) | {
        "workers": workers,
        "rate": result["throughput"]["ran_per_s"],
        "ok": sums["ok"],
        "coordinator_mb": memory,
        "waiting_most": waiting,
        "start_s": t0_at - _instant(report["started_at"]),
        "end_s": _instant(report["finished_at"]) - t0_at - seconds,
    }


def prefer(priority: int, *processes: psutil.Process) -> None:
    """Have other programs of this machine wait; who may not do this measures beside them."""
    for one in processes:
        with contextlib.suppress(psutil.AccessDenied):
            one.nice(priority)
        # where each session is a group of the scheduler, it is the group that counts
        with contextlib.suppress(OSError):
            Path(f"/proc/{one.pid}/autogroup").write_text(str(priority), encoding="ascii")


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _await_load(stage: Stage, child: Child) -> str:
    deadline = time.monotonic() + MARGIN_S * 2
    while True:
        for path in (stage.data / "runs").glob("*/blocks"):
            if path.stat().st_size:
                return path.parent.name
        if child.process.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"the load has not begun\n{child.tail()[-2000:]}")
        time.sleep(0.05)


def _counters(
    coordinator: psutil.Process,
    server: psutil.Process,
    others: list[psutil.Process],
    client: redis.Redis,
) -> _Counters:
    stats = cast(dict[str, Any], client.info("commandstats"))
    return _Counters(
        at=time.monotonic(),
        coordinator=_cpu_s(coordinator),
        redis=_cpu_s(server),
        workers=sum(map(_cpu_s, others)),
        info=cast(dict[str, float], client.info()),
        blocks=stats.get("cmdstat_xadd", {"calls": 0})["calls"],
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _figures(before: _Counters, after: _Counters) -> dict[str, float]:
    seconds = after.at - before.at

    def info(name: str) -> float:
        return (after.info[name] - before.info[name]) / seconds

    return {
        "coordinator_cpu": (after.coordinator - before.coordinator) / seconds,
        "redis_cpu": (after.redis - before.redis) / seconds,
        "workers_cpu": (after.workers - before.workers) / seconds,
        "redis_mb": after.info["used_memory_peak"] / 1e6,
        "commands_per_s": info("total_commands_processed"),
        "blocks_per_s": (after.blocks - before.blocks) / seconds,
        "in_bytes_per_s": info("total_net_input_bytes"),
        "out_bytes_per_s": info("total_net_output_bytes"),
    }
