"""A shared Redis that can fail, hosts behind proxies, runs that are resumed, and their judge."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import redis

from helpers.attacker import Attacker
from helpers.import_path import import_path
from helpers.judge import STATES, Ending, Seen, Told, miscounts, violations, wrong_code
from helpers.processes import holds, is_living
from helpers.runs import Cluster, Site, Started, asked, free, site
from osbench.common.errors import OsbenchError
from osbench.coordinator.results.storage.resumable import PLAN
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers.child import PATIENCE_S
from servers.fragile_redis import FragileRedis, fragile_redis
from servers.iteration_log import IterationLog, iteration_log
from servers.rabbitmq import RABBITMQ, RabbitmqServer, rabbitmq_server
from servers.redis_proxy import RedisProxy, Tape, redis_proxy

#: Makes the clock of a host step and its name server slow; see the module in there.
_HOST_FAULTS = Path(__file__).with_name("host_faults")
#: A name of 127.0.0.1 that the hosts know.
SLOW_NAME = "redis.test"


def wait_until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> bool:
    """Whether a condition came true within the time."""
    deadline = time.monotonic() + within_s
    return all(time.monotonic() <= deadline for _ in asked(condition, 0.05))


@dataclass(kw_only=True)
class Host:
    """A supervisor with one worker process, which reaches Redis through a proxy of its own."""

    label: str
    supervisor: Started
    proxy: RedisProxy
    #: File with the offset of its wall clock.
    clock: Path
    #: While this file is there, its name server takes 11 s.
    slow_names: Path

    def processes(self) -> list[psutil.Process]:
        """Its living worker processes."""
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(self.supervisor.process.pid).children()
            return [one for one in found if is_living(one)]
        return []

    def signal_process(self, number: signal.Signals) -> None:
        """Signal the worker process alone."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)

    def signal_host(self, number: signal.Signals) -> None:
        """Signal the supervisor and its process at once, as where the host stops or dies."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.supervisor.process.pid, number)

    @property
    def is_up(self) -> bool:
        """Whether its supervisor lives."""
        return self.supervisor.process.poll() is None

    def step_clock(self, seconds: float) -> None:
        """Move its wall clock against that of the machine."""
        part = self.clock.with_suffix(".part")
        part.write_text(f"{seconds:+f}\n", "utf-8")
        part.rename(self.clock)


@dataclass(kw_only=True)
class Load:
    """A run: the process that drives it now, and those before."""

    command: Started
    run: str
    #: Of its workloads, in their order.
    tags: Sequence[str]
    is_idempotent: bool = False
    is_interrupted: bool = False
    #: Exit codes of the processes so far.
    codes: list[int] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        """Whether a coordinator of it lives."""
        return self.command.process.poll() is None

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.is_interrupted = True
        self.command.interrupt()

    def signal(self, number: signal.Signals) -> None:
        """Signal the coordinator."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.command.process.pid, number)


class Arena(Cluster):
    """A cluster whose parts all reach Redis through proxies, and the server under test."""

    def __init__(
        self,
        here: Site,
        redis: FragileRedis,
        log: IterationLog,
        stack: contextlib.ExitStack,
        rabbitmq: RabbitmqServer | None = None,
    ) -> None:
        """`rabbitmq` is the broker; without it that is Redis."""
        super().__init__(here, redis)
        self.rabbitmq = rabbitmq
        self.fragile = redis
        self.log = log
        self.tape = Tape()
        self._stack = stack
        self.hosts: list[Host] = []
        self.loads: list[Load] = []
        #: Settings on top of those of `Cluster`.
        self.settings: dict[str, dict[str, Any]] = {}
        self.proxy = self._proxy()
        self.configured()

    @property
    def attacker(self) -> Attacker:
        """Someone who has heard all that was sent so far."""
        return Attacker(self.fragile, self.tape, seed=len(self.tape.heard()))

    def configured(self, **sections: Mapping[str, Any]) -> None:
        """Settings of the coordinator and of the hosts that are started from now on."""
        self.settings = {name: dict(values) for name, values in sections.items()}
        self.site.configure(self._reached_by(self.proxy.url), self.settings)

    def _reached_by(self, redis_url: str) -> dict[str, dict[str, str]]:
        broker = {"broker_url": self.rabbitmq.url} if self.rabbitmq is not None else {}
        return {"messaging": {"redis_url": redis_url, **broker}}

    def start_host(self, *arguments: str, address: str = "127.0.0.1") -> Host:
        """Start a supervisor with one process; does not wait. `address` is that of its proxy."""
        proxy = self._proxy()
        url = proxy.url.replace("127.0.0.1", address)
        label = f"host-{len(self.hosts)}"
        clock = self.site.home / f"{label}.clock"
        clock.write_text("+0\n", "utf-8")
        config = self.site.configure(self._reached_by(url), self.settings, name=f"{label}.conf")
        slow = self.site.home / f"{label}.slow"
        variables = {
            **import_path(_HOST_FAULTS),
            "OSBENCH_TEST_CLOCK": clock,
            "OSBENCH_TEST_SLOW_NAMES": slow,
        }
        supervisor = self.site.start(
            "env",
            *(f"{name}={value}" for name, value in variables.items()),
            *("osbench-worker", "--config-file", str(config)),
            *("--processes", "1", "--label", label, *arguments),
        )
        host = Host(label=label, supervisor=supervisor, proxy=proxy, clock=clock, slow_names=slow)
        self.hosts.append(host)
        self.workers.append(supervisor)
        return host

    def start_hosts(self, count: int) -> list[Host]:
        """Start hosts and wait until their workers are idle."""
        hosts = [self.start_host() for _ in range(count)]
        self.await_free()
        return hosts

    def await_free(self) -> None:
        """Wait until the worker of every host is idle. Raises AssertionError."""
        assert wait_until(self.are_free), [one.supervisor.said() for one in self.hosts]

    def start_load(
        self,
        runner: Mapping[str, Any],
        *arguments: str,
        tag: str = "load",
        answer_ms: int = 20,
    ) -> Load:
        """Start a run of requests to the server under test; returns when its directory is there."""
        return self.start_run([self.requests(runner, tag, answer_ms)], *arguments, tags=[tag])

    def requests(self, runner: Mapping[str, Any], tag: str, answer_ms: int = 20) -> dict[str, Any]:
        """A workload of requests to the server under test."""
        request = {"url": self.log.url(tag, answer_ms), "method": "GET", "status_code": 200}
        return {"scenario": {"HttpRequests.check_request": request}, "runner": runner}

    def start_run(
        self,
        subtasks: Sequence[Mapping[str, Any]],
        *arguments: str,
        tags: Sequence[str] = ("load",),
        idempotent: bool = False,
    ) -> Load:
        """Start a run of any subtasks; returns when it has begun: from then on it can be resumed.

        `tags` are those of its workloads, `idempotent` holds for all of them.
        """
        before = self.run_ids()
        task = self.site.task(*subtasks, name=f"task-{tags[0]}.json")
        command = self.site.begin("osbench-coord", "run", "--json", task, *arguments)
        assert wait_until(lambda: self.run_ids() - before), command.said()
        (run,) = self.run_ids() - before
        load = Load(command=command, run=run, tags=tags, is_idempotent=idempotent)
        self.loads.append(load)
        plan = self.site.data / "runs" / run / PLAN
        assert wait_until(lambda: plan.exists() or not load.is_running), command.said()
        return load

    def run_ids(self) -> set[str]:
        """Every run with a directory."""
        folder = self.site.data / "runs"
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def await_started(self, load: Load, count: int = 1) -> None:
        """Wait until so many iterations of a run have reached the server. AssertionError if not."""
        reached = wait_until(lambda: len(self.log.seen(load.run)) >= count or not load.is_running)
        assert reached, load.command.said()[-2000:]
        assert len(self.log.seen(load.run)) >= count, load.command.said()[-2000:]

    def resume(self, load: Load, *arguments: str) -> Started:
        """`resume` of a run whose coordinator has ended."""
        load.codes.append(load.command.process.wait(PATIENCE_S))
        load.command = self.site.begin("osbench-coord", "resume", load.run, *arguments)
        return load.command

    def finish(self, load: Load, within_s: float = PATIENCE_S) -> int:
        """Wait for the end of a run; its exit code. Raises AssertionError where it hangs."""
        if not wait_until(lambda: not load.is_running, within_s):
            raise AssertionError(f"{load.run} hangs: {load.command.said()[-2000:]}")
        load.codes.append(load.command.process.wait())
        return load.codes[-1]

    def summary(self, load: Load) -> dict[str, Any]:
        """What `results --json` prints of a run. Raises AssertionError where that is nothing."""
        shown = self.site.coord("results", load.run, "--json")
        summary = json.loads(shown.out)
        assert "workloads" in summary, (summary, load.command.said()[-2000:])
        return dict(summary)

    def state(self, load: Load) -> str:
        """What `runs list` says of a run, such as finished or resumable."""
        listed = json.loads(self.site.coord("runs", "list", "--json").out)
        (found,) = [str(one["state"]) for one in listed if one["run"] == load.run]
        return found

    def is_driven(self, load: Load) -> bool:
        """Whether the command of a run that was started last is its coordinator."""
        lock = RunDirectory(self.site.data / "runs" / load.run).path / "lock"
        return holds(load.command.process.pid, lock)

    def begun(self, load: Load) -> Sequence[str]:
        """The tags of the workloads that a run says it has begun."""
        return load.tags[: len(self.summary(load)["workloads"])]

    def had_no_room(self, load: Load) -> bool:
        """Whether a run says that its disk was full."""
        directory = RunDirectory.find(str(self.site.data), load.run)
        failure = directory.read("failure.json") or {}
        return os.strerror(errno.ENOSPC) in failure.get("message", "")

    def told(self, load: Load, summary: Mapping[str, Any]) -> list[Told]:
        """What a run that has ended says of the workloads that were begun."""
        rows = self.site.rows(load.run)
        return [
            Told(
                run=load.run,
                tag=tag,
                accounting=workload["accounting"],
                rows=[
                    (int(row["iteration"]), row["outcome"])
                    for row in rows
                    if row["workload"] == str(at)
                ],
                is_idempotent=load.is_idempotent,
            )
            for at, (tag, workload) in enumerate(zip(load.tags, summary["workloads"], strict=False))
        ]

    def judged(self, load: Load) -> tuple[Mapping[str, Any], list[str]]:
        """The sums of a run that has ended, and all that does not fit with the server.

        The sums are those of `accounting` over its workloads, and those of `miscounts`. Raises
        AssertionError where the run says nothing.
        """
        summary, lines = self.summary(load), self.log.lines()
        told = self.told(load, summary)
        sums: Counter[str] = Counter()
        drops: Counter[str] = Counter()
        ending = Ending(
            code=load.codes[-1],
            accountings=[one.accounting for one in told],
            notes=summary.get("notes", ()),
            is_interrupted=load.is_interrupted,
        )
        found = wrong_code(ending)
        if load.codes[-1] != summary["exit_code"]:
            found.append(f"exit code {load.codes[-1]}, {summary['exit_code']} in the summary")
        for one in told:
            seen = Seen.of(lines, load.run, one.tag)
            found += [f"{one.tag}: {what}" for what in violations(one, seen)]
            sums.update({name: one.accounting[name] for name in ("planned", *STATES, "reruns")})
            sums.update(miscounts(one, seen))
            drops.update(one.accounting["drops"])
        for tag in load.tags[len(told) :]:
            if Seen.of(lines, load.run, tag).starts:
                found.append(f"{tag}: started, and the report says nothing of it")
        return {**sums, "drops": drops}, found + self.said_wrong()

    def seen(self, load: Load) -> Seen:
        """What the server saw of the first workload of a run."""
        return Seen.of(self.log.lines(), load.run, load.tags[0])

    def exact(self, load: Load) -> Mapping[str, Any]:
        """The accounting of a run that has ended; it fits with what the server saw."""
        sums, found = self.judged(load)
        assert not found, (found, dict(sums), load.command.said()[-2000:])
        return sums

    def said_wrong(self) -> list[str]:
        """Tracebacks and raw escape sequences that any process has written."""
        found = []
        for path in sorted(self.site.home.glob("stderr-*")):
            said = path.read_bytes()
            if b"Traceback" in said:
                found.append(f"a traceback: {_last(said)} ({path.name})")
            if b"\x1b" in said:
                found.append(f"a raw escape sequence ({path.name})")
        return found

    def are_free(self) -> bool:
        """Whether the worker of every host that is up is idle and nobody's."""
        try:
            idle = {beat.label for beat in free(self.present())}
        except (OsbenchError, redis.RedisError):
            return False
        return idle >= {host.label for host in self.hosts if host.is_up}

    def heal(self) -> None:
        """End every fault that lasts, but for what has died."""
        for proxy in self.proxies():
            proxy.heal()
        for host in self.hosts:
            host.signal_host(signal.SIGCONT)
        for load in self.loads:
            load.signal(signal.SIGCONT)

    def proxies(self) -> Sequence[RedisProxy]:
        """The coordinator's and those of the hosts."""
        return [self.proxy, *(host.proxy for host in self.hosts)]

    def fail_over(self, copy: Path) -> None:
        """A replica that has the data of a copy takes over; the server before is gone."""
        replica = self.fragile.start_replica(copy)
        self._stack.callback(replica.kill)
        before, self.fragile = self.fragile, replica
        self.redis = replica
        before.kill()
        for proxy in self.proxies():
            proxy.cut(0.0)

    def _proxy(self) -> RedisProxy:
        made = redis_proxy(lambda: self.fragile.port, self.fragile.password, tape=self.tape)
        return self._stack.enter_context(made)


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


@contextlib.contextmanager
def arena(*, rabbitmq: bool = False) -> Iterator[Arena]:
    """A new arena without hosts; all ends with it. `rabbitmq`: that is the broker, if installed."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(fragile_redis(password="chaos"))
        here = stack.enter_context(site())
        log = stack.enter_context(iteration_log(redis.folder))
        broker = None
        if rabbitmq and RABBITMQ.exists():
            broker = stack.enter_context(rabbitmq_server())
        yield Arena(here, redis, log, stack, broker)
