"""Coordinator, Redis and workers, each on a host of its own."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.judge import Seen, Told, violations
from helpers.net_hosts import probes
from helpers.net_hosts.network import NetHost, Network, network
from helpers.runs import Cluster, Finished, Site, Started
from servers import RedisServer, folder
from servers.child import PATIENCE_S
from servers.iteration_log import Line

COORDINATOR, REDIS = "coordinator", "redis"
WORKERS = ("worker-1", "worker-2")
_PORT = 6379


class HostRedis(RedisServer):
    """A Redis on a host, at its usual port; who tests reaches it through a unix socket."""

    def __init__(self, where: Path, host: NetHost, environment: Sequence[str] = ()) -> None:
        super().__init__(where, password="hosts", unixsocket=True)
        self.host = host
        #: NAME=VALUE, for its process.
        self.host_environment = tuple(environment)

    @property
    def url_by_name(self) -> str:
        """Where it answers the other hosts."""
        return f"redis://:{self.password}@{self.host.name}:{_PORT}/0"

    def command(self) -> list[str]:
        """What starts the server on its host."""
        executable, config = super().command()
        with Path(config).open("a", encoding="utf-8") as file:
            # the last one counts
            file.write(f"port {_PORT}\nbind 0.0.0.0\n")
        return [*self.host.within(), "env", *self.host_environment, executable, config]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A run that has ended, and all that does not fit with what ran on the hosts."""

    done: Finished
    sums: Mapping[str, Any]
    problems: Sequence[str]
    #: Rows of `results --csv`.
    rows: Sequence[Mapping[str, str]]
    #: What ran, in the order of the lines.
    lines: Sequence[Line]

    @property
    def workload(self) -> dict[str, Any]:
        """The only workload of the report."""
        (found,) = self.done.result["workloads"]
        return dict(found)

    @property
    def notes(self) -> str:
        """What the report says of the run, in one text."""
        return "\n".join(self.done.result["notes"])

    def t0_on(self, label: str) -> float:
        """The instant that a worker took for t0, monotonic seconds, by what ran on it."""
        at = {line.iteration: line.at for line in self.lines if not line.answered}
        # the probe looks at the clock a little after the engine has
        return min(
            at[int(row["iteration"])] - float(row["started_s"])
            for row in self.rows
            if row["worker"] == label and row["started_s"]
        )

    def told_late(self) -> list[float]:
        """How much later than the report says each iteration noted its start, seconds.

        The probe notes it a little later than the engine; both count from the worker's t0.
        """
        at = {line.iteration: line.at for line in self.lines if not line.answered}
        t0s = {row["worker"]: 0.0 for row in self.rows if row["started_s"]}
        t0s = {label: self.t0_on(label) for label in t0s}
        return [
            at[int(row["iteration"])] - t0s[row["worker"]] - float(row["started_s"])
            for row in self.rows
            if row["started_s"]
        ]

    def starts(self, host: str) -> list[float]:
        """When iterations started on a host, monotonic seconds."""
        return sorted(line.at for line in self.lines if line.tag == host and not line.answered)


class NetCluster(Cluster):
    """A cluster whose parts have a host each; files of runs are on that of the coordinator."""

    def __init__(self, hosts: Network, here: Site, redis: HostRedis) -> None:
        self.log = here.home / "ran.log"
        self.hosts = hosts
        self._stack = contextlib.ExitStack()
        super().__init__(here, redis)
        self.messaging = {
            "messaging": {"redis_url": redis.url_by_name},
            "coordinator": {"plugin_path": probes.__file__, "worker_lost_after_s": 3},
            "worker": {"plugin_path": probes.__file__},
        }
        here.configure(self.messaging)

    def start_on(self, name: str, *arguments: str, environment: Sequence[str] = ()) -> Started:
        """Start a supervisor with one process on a host; does not wait.

        `environment` has NAME=VALUE.
        """
        home = self._stack.enter_context(self.hosts[name].site())
        home.configure(self.messaging)
        shutil.copy(self.site.data / "keys", home.data / "keys")
        command = ("osbench-worker", "--processes", "1", "--label", name, *arguments)
        worker = home.start("env", *environment, *command) if environment else home.begin(*command)
        self.workers.append(worker)
        return worker

    def workload(self, runner: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """A workload of probes that take 20 ms, or `sleep_s`."""
        arguments = {"path": str(self.log), "sleep_s": more.pop("sleep_s", 0.02)}
        return {"scenario": {"HostProbe.note": arguments}, "runner": dict(runner), **more}

    def start_run(self, workload: Mapping[str, Any], workers: int = len(WORKERS)) -> Started:
        """Start a run of a workload by so many workers; does not wait."""
        # a worker that was cut off may need some seconds until it reads offers again
        options = ("--workers", str(workers), "--wait-for-workers", "60")
        task = self.site.task(workload)
        return self.site.begin("osbench-coord", "run", "--json", *options, task)

    def await_ran(self, run: Started, count: int) -> None:
        """Wait until so many iterations of the present run have started."""
        before = len(self.lines())
        run.wait_for(lambda: len(self.lines()) - before >= count)

    def ran_on(self, host: str) -> int:
        """How many iterations have started on a host, of all runs."""
        return sum(line.tag == host and not line.answered for line in self.lines())

    def lines(self) -> list[Line]:
        """What ran so far, by all runs; the tag is the host. Without a line being written."""
        if not self.log.exists():
            return []
        found = []
        for text in self.log.read_text("utf-8").split("\n")[:-1]:
            what, at, run, host, iteration = text.split(" ")
            found.append(
                Line(
                    answered=what == "A",
                    at=float(at),
                    run=run,
                    tag=host,
                    iteration=int(iteration),
                )
            )
        return found

    def judge(
        self, run: Started, *, idempotent: bool = False, within_s: float = PATIENCE_S
    ) -> Verdict:
        """Wait for the end of a run of one workload, and compare what it says with what ran."""
        done = run.finish(within_s)
        run_id = done.result["run_id"]
        rows = self.site.rows(run_id)
        told = Told(
            run=run_id,
            tag="",
            accounting=done.sums,
            rows=[(int(row["iteration"]), row["outcome"]) for row in rows],
            is_idempotent=idempotent,
        )
        lines = [line for line in self.lines() if line.run == run_id]
        seen = Seen(
            starts=Counter(line.iteration for line in lines if not line.answered),
            answered=frozenset(line.iteration for line in lines if line.answered),
        )
        problems = violations(told, seen)
        for said in (done.err, *(worker.said() for worker in self.workers)):
            if "Traceback" in said:
                problems.append(f"a traceback: {said[said.index('Traceback') :][-2000:]}")
        return Verdict(done=done, sums=done.sums, problems=problems, rows=rows, lines=lines)

    def end_workers(self) -> None:
        """End all workers at once, as where their hosts fail."""
        self._stack.close()
        self.workers.clear()


@contextlib.contextmanager
def net_cluster(*more: str, seed: int = 1, redis: Sequence[str] = ()) -> Iterator[NetCluster]:
    """Hosts for coordinator, Redis, two workers, and `more`; workers are not started.

    `redis` has NAME=VALUE, for the environment of Redis; `seed` is that of loss and jitter.
    """
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(network(COORDINATOR, REDIS, *WORKERS, *more, seed=seed))
        server = HostRedis(stack.enter_context(folder()), hosts[REDIS], redis)
        stack.callback(server.kill)
        server.start()
        here = stack.enter_context(hosts[COORDINATOR].site())
        cluster = NetCluster(hosts, here, server)
        stack.callback(cluster.end_workers)
        yield cluster


def facts(verdict: Verdict) -> str:
    """What a run came to, in a line."""
    return f"code {verdict.done.code}, {json.dumps(verdict.sums)}"
