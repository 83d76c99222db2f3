"""`make crowd`: many real worker processes on hosts in network namespaces, in a table.

python -m helpers.net_hosts.crowd [--hosts N] [--processes N] [--seconds N]

Exit code 1 if an account does not fit, or an iteration is not ok.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from helpers.net_hosts.net_cluster import WORKERS, NetCluster, Verdict, net_cluster
from helpers.net_hosts.network import reason_against
from helpers.runs import Started

#: Virtual users of each process in the closed load, how long an iteration takes, and arrivals
#: per second of each process in the open load.
USERS, TAKES_S, RATE = 4, 0.5, 4
#: Silence after which a worker is lost, seconds: all prepare at once on the few cores of a machine.
LOST_S = 30
#: Between two looks at the CPU time of processes, seconds.
LOOK_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU time of a run on the side of its coordinator, seconds, and the times of its parts."""

    coordinator_s: float
    redis_s: float
    #: From the command to the first iteration, seconds.
    start_s: float
    #: From the first iteration to the end of the last one, seconds.
    load_s: float
    #: From the end of the last iteration to the end of the command, seconds.
    end_s: float


def main() -> int:
    """Play both loads; return the exit code."""
    parser = argparse.ArgumentParser(prog="make crowd")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    reason = reason_against()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    hosts = [f"worker-{number}" for number in range(1, args.hosts + 1)]
    count = args.hosts * args.processes
    problems: list[str] = []
    with net_cluster(*hosts[len(WORKERS) :]) as cluster:
        cluster.messaging["coordinator"]["worker_lost_after_s"] = LOST_S
        cluster.site.configure(cluster.messaging)
        begun = time.monotonic()
        for name in hosts:
            cluster.start_on(name, "--processes", str(args.processes), "--virtual-users", "100")
        pids = [beat.pid for beat in cluster.await_idle(count)]
        took_s = time.monotonic() - begun
        print(f"{count} processes on {args.hosts} hosts: all free after {took_s:.1f} s")
        _print_memory("free", cluster, pids)
        for load, runner, sleep_s in _loads(count, args.seconds):
            verdict, cost = _played(cluster, cluster.workload(runner, sleep_s=sleep_s), count)
            print(_line(load, verdict, cost), flush=True)
            for note in verdict.done.result["notes"]:
                print(f"    {note}")
            problems += [f"{load}: {one}" for one in _problems(verdict, hosts, count)]
            pids = [beat.pid for beat in cluster.await_idle(count)]
            _print_memory(f"after the {load} load", cluster, pids)
    print("\n".join(problems) or "all fits")
    return int(bool(problems))


def _loads(count: int, seconds: int) -> Iterator[tuple[str, dict[str, Any], float]]:
    users = USERS * count
    closed = {"concurrency": users, "times": round(seconds * users / TAKES_S)}
    yield "closed", {"constant": closed}, TAKES_S
    yield "open", {"rps": {"rps": RATE * count, "times": RATE * count * seconds}}, 0.02


def _played(cluster: NetCluster, workload: dict[str, Any], count: int) -> tuple[Verdict, Cost]:
    redis = psutil.Process(cluster.redis.pid)
    before_s, begun = _cpu_s(redis), time.monotonic()
    run = cluster.start_run(workload, workers=count)
    coordinator_s, ended = _watch(run)
    redis_s = _cpu_s(redis) - before_s
    done = run.finish()
    said = [worker.said()[-500:] for worker in cluster.workers]
    assert "run_id" in done.result, (done.out, done.err, said)
    verdict = cluster.judge(run)
    first, last = verdict.lines[0].at, verdict.lines[-1].at
    return verdict, Cost(
        coordinator_s=coordinator_s,
        redis_s=redis_s,
        start_s=first - begun,
        load_s=last - first,
        end_s=ended - last,
    )


def _watch(run: Started) -> tuple[float, float]:
    """Return the CPU time that the command took, seconds, and when it ended, monotonic."""
    coordinator, taken_s = psutil.Process(run.process.pid), 0.0
    while run.process.poll() is None:
        try:
            taken_s = _cpu_s(coordinator)
        except psutil.Error:
            break
        time.sleep(LOOK_S)
    return taken_s, time.monotonic()


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _problems(verdict: Verdict, hosts: Sequence[str], count: int) -> list[str]:
    found = list(verdict.problems)
    if verdict.sums["ok"] != verdict.sums["planned"]:
        found.append(f"not every iteration was ok: {dict(verdict.sums)}")
    silent = set(hosts) - {line.tag for line in verdict.lines}
    if silent:
        found.append(f"no iteration on {', '.join(sorted(silent))}")
    workers = len(verdict.workload["workers"])
    if workers != count:
        found.append(f"{workers} of {count} processes took part")
    return found


def _print_memory(moment: str, cluster: NetCluster, pids: Sequence[int]) -> None:
    workers = [_pss_mb(pid) for pid in pids]
    every = {one.pid for worker in cluster.workers for one in _tree(worker)}
    others = sum(_pss_mb(pid) for pid in every - set(pids))
    print(
        f"memory, {moment}: a worker process {statistics.median(workers):.1f} MB "
        f"({min(workers):.1f} to {max(workers):.1f}), all {sum(workers):.0f} MB; "
        f"their supervisors {others:.0f} MB; Redis {_pss_mb(cluster.redis.pid):.1f} MB",
        flush=True,
    )


def _tree(worker: Started) -> list[psutil.Process]:
    supervisor = psutil.Process(worker.process.pid)
    return [supervisor, *supervisor.children(recursive=True)]


def _pss_mb(pid: int) -> float:
    """Memory of a process, with its part of the pages that it shares."""
    return float(psutil.Process(pid).memory_full_info().pss) / 1e6


def _line(load: str, verdict: Verdict, cost: Cost) -> str:
    sums, workload = verdict.sums, verdict.workload
    held, lag = workload["offered"]["concurrency_held"], workload.get("start_lag")
    parts = [
        f"code {verdict.done.code}",
        f"{sums['ok']} of {sums['planned']} ok",
        *([f"{held:.1%} of users held"] if held is not None else []),
        *([f"start lag p99 {lag['p99'] * 1e3:.1f} ms"] if lag else []),
        f"start {cost.start_s:.1f} s",
        f"load {cost.load_s:.1f} s",
        f"end {cost.end_s:.1f} s",
        f"CPU of the command {cost.coordinator_s:.2f} s",
        f"CPU of Redis {cost.redis_s:.2f} s",
    ]
    return f"{load}: {', '.join(parts)}"


if __name__ == "__main__":
    sys.exit(main())
