"""A user's home with osbench's commands, workers started by hand, and what a run has left."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import psutil

from helpers import commands, forked_commands, results_schema
from helpers.commands import environment
from helpers.processes import command_of, is_living
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.load.local import watchdog
from osbench.coordinator.report.run_facts import RunFacts, read_facts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import RedisServer, folder
from servers.child import PATIENCE_S

STATES = ("ok", "failed", "timed_out", "dropped", "lost", "not_started")

#: Machines that run tests are slow and shared: how late they are is not what is tested, and a
#: worker process takes as long to start as most loads of tests.
#: Their workers come late, too.
LENIENT = {
    "benchmark": {"lag_limit_s": 60, "max_lag_s": 60},
    "coordinator": {"wait_for_workers_s": 240},
    "worker": {"processes": 1},
}


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What a user has in hand when a command has ended."""

    code: int
    out: str
    err: str

    @cached_property
    def printed(self) -> dict[str, Any]:
        """The one object on stdout, which follows its schema."""
        found = json.loads(self.out)
        results_schema.validate(found)
        assert isinstance(found, dict)
        return found

    @property
    def result(self) -> dict[str, Any]:
        """The same of a run, which ends with the exit code that it prints."""
        assert self.printed["exit_code"] == self.code
        return self.printed

    @property
    def sums(self) -> dict[str, Any]:
        """The accounting of the only workload; its states sum to the plan."""
        (workload,) = self.result["workloads"]
        return checked(workload)


def checked(workload: Mapping[str, Any]) -> dict[str, Any]:
    """The accounting of a workload; its states sum to the plan."""
    sums = dict(workload["accounting"])
    assert sum(sums[state] for state in STATES) == sums["planned"], sums
    return sums


def asked(condition: Callable[[], object], least_s: float) -> Iterator[None]:
    """Ask until a condition is true, an entry for each time that it is not.

    A condition that takes long is asked less often: who waits leaves the machine to others.
    """
    begun = time.monotonic()
    while not condition():
        yield
        time.sleep(max(least_s, 2 * (time.monotonic() - begun)))
        begun = time.monotonic()


class Started:
    """A running command, as if in a separate terminal."""

    def __init__(
        self, process: subprocess.Popen[bytes] | forked_commands.Command, err: Path, out: Path
    ) -> None:
        """`err` and `out` are files that it writes."""
        self.process = process
        self._err = err
        self._out = out

    def said(self) -> str:
        """What it has written to stderr so far."""
        return self._err.read_text("utf-8", errors="replace")

    def await_said(self, text: str) -> None:
        """Wait until stderr holds a text."""
        self.wait_for(lambda: text in self.said())

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait for something that comes true while the command runs."""
        for _ in asked(condition, 0.01):
            assert self.process.poll() is None, self.said()

    def interrupt(self) -> None:
        """Ctrl-C: the terminal signals the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finish(self, within_s: float = PATIENCE_S) -> Finished:
        """Wait for the end."""
        code = self.process.wait(within_s)
        return Finished(code=code, out=self._out.read_text("utf-8"), err=self.said())

    def end(self) -> None:
        """End it and what it has started, whatever state it is in."""
        if self.process.poll() is None:
            started = psutil.Process(self.process.pid).children(recursive=True)
            tree = [self.process, *started]
            for one in tree:
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    one.kill()
        self.process.wait()


class Site:
    """A home directory and a configuration, from which a user types commands."""

    def __init__(
        self, home: Path, within: Sequence[str] = (), programs: Path | None = None, host: int = 0
    ) -> None:
        self.home = home
        #: The process whose namespaces `within` enters; 0 if it does something else.
        self._host = host
        #: Folder of osbench's commands; None for those of the tests' interpreter.
        self.programs = programs
        #: Command that runs all others, such as one that enters a namespace.
        self._within = tuple(within)
        #: Where local mode makes its private folders, and all else its temporary files.
        self.runtime = home / "tmp"
        self.runtime.mkdir()
        self.data.mkdir(mode=0o700)
        #: Variables that commands have beside the usual ones.
        self.variables: dict[str, str] = {}
        #: Whether forked commands have Rally's plug-ins.
        self.rally = False
        self._started: list[Started] = []
        self._ended = itertools.count()
        self.configure({})

    @property
    def data(self) -> Path:
        """osbench's data directory."""
        return self.home / ".osbench"

    def configure(self, *sections: Mapping[str, Mapping[str, Any]], name: str = "") -> Path:
        """Write osbench.conf (or another file) of `LENIENT` and `sections`, later ones win."""
        merged: dict[str, dict[str, Any]] = {}
        for part in (LENIENT, *sections):
            for section, values in part.items():
                merged.setdefault(section, {}).update(values)
        lines: list[str] = []
        for section, values in merged.items():
            lines += [f"[{section}]", *(f"{key} = {value}" for key, value in values.items())]
        path = self.home / name if name else self.data / "osbench.conf"
        # whole at each moment: a command that was just started may be reading it
        draft = path.with_name(f"{path.name}.draft")
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.replace(path)
        return path

    def task(self, *workloads: Mapping[str, Any], name: str = "task.json") -> str:
        """Write a task of version 2 with a subtask for each workload; returns its path."""
        subtasks = [{"title": f"{at}", **one} for at, one in enumerate(workloads)]
        path = self.home / name
        path.write_text(json.dumps({"version": 2, "title": "A test", "subtasks": subtasks}))
        return str(path)

    def write(self, name: str, text: str) -> Path:
        """Write a file below the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def deployment(self, spec: Mapping[str, Any], name: str = "lab") -> None:
        """Make a deployment record, which is in use from then on."""
        file = self.write(f"{name}.json", json.dumps(spec))
        made = self.coord("deployment", "create", "--name", name, "--file", str(file))
        assert made.code == 0, made.err

    def start(self, command: str, *arguments: str) -> Started:
        """Start a command in a new session, with its output in files."""
        return self._begun(
            lambda files: subprocess.Popen(
                [*self._within, command, *arguments],
                cwd=self.home,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=files[0],
                stderr=files[1],
                start_new_session=True,
            )
        )

    def begin(self, command: str, *arguments: str) -> Started:
        """Start osbench-coord or osbench-worker as `start` does, without its imports."""
        if not self._is_forking:
            return self.start(command, *arguments)
        return self._begun(
            lambda files: forked_commands.begin(
                [command, *arguments],
                files,
                folder=self.home,
                env=self._environment(),
                host=self._host,
                rally=self.rally,
            )
        )

    def _begun(
        self,
        begin: Callable[[Sequence[IO[bytes]]], subprocess.Popen[bytes] | forked_commands.Command],
    ) -> Started:
        number = len(self._started)
        out, err = self.home / f"stdout-{number}", self.home / f"stderr-{number}"
        with out.open("wb") as written, err.open("wb") as said:
            started = Started(begin((written, said)), err, out)
        self._started.append(started)
        return started

    @property
    def _is_forking(self) -> bool:
        """Whether commands can be forked: not by `within` alone, nor from `programs`."""
        if self._host:
            return forked_commands.can_be_forked(self._environment())
        return not self._within and self.programs is None

    def coord(self, *arguments: str) -> Finished:
        """Run osbench-coord to its end."""
        if not self._is_forking:
            return self.start("osbench-coord", *arguments).finish()
        done = forked_commands.run(
            arguments,
            folder=self.home,
            env=self._environment(),
            within_s=PATIENCE_S,
            host=self._host,
            rally=self.rally,
        )
        (self.home / f"stderr-coord-{next(self._ended)}").write_text(
            done.stderr, "utf-8", errors="surrogateescape"
        )
        return Finished(code=done.returncode, out=done.stdout, err=done.stderr)

    def call(self, *arguments: str) -> Finished:
        """Run an osbench-coord that ends before a run, in this process: `helpers.commands.call`."""
        done = commands.call(self.home, *arguments)
        return Finished(code=done.returncode, out=done.stdout, err=done.stderr)

    def _environment(self) -> dict[str, str]:
        usual = environment(self.home)
        if self.programs:
            usual["PATH"] = f"{self.programs}{os.pathsep}{usual['PATH']}"
        return {
            **usual,
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TMPDIR": str(self.runtime),
            **self.variables,
        }

    def run(self, *arguments: str) -> Finished:
        """`osbench-coord run --json` to its end."""
        return self.coord("run", "--json", *arguments)

    def rows(self, run_id: str) -> list[dict[str, str]]:
        """The iterations of a run, as `results --csv` prints them."""
        done = self.coord("results", run_id, "--csv")
        assert done.code == 0, done.err
        return list(csv.DictReader(io.StringIO(done.out)))

    def status(self) -> dict[str, Any]:
        """How far the only run is; empty before it says so."""
        found = next(self.data.glob("runs/*/status.json"), None)
        return json.loads(found.read_text("utf-8")) if found is not None else {}

    def facts(self, run_id: str) -> RunFacts:
        """What the directory of a run shows."""
        return read_facts(RunDirectory(self.data / "runs" / run_id))

    def marks(self, run_id: str) -> list[dict[str, Any]]:
        """The marks of the first workload of a run."""
        timeline = self.facts(run_id).timeline
        assert timeline is not None
        return list(timeline["workloads"][0]["marks"])

    def private(self) -> list[psutil.Process]:
        """Living processes of local mode that were started from here."""
        found = []
        for process in psutil.process_iter():
            try:
                values = process.environ()
            except psutil.Error:
                continue
            folder = values.get(watchdog.MARK) or values.get("XDG_RUNTIME_DIR", "")
            if folder.startswith(str(self.runtime)):
                found.append(process)
        own = {one.process.pid for one in self._started}
        return [one for one in found if one.pid not in own and is_living(one)]

    def await_nothing_left(self) -> None:
        """Wait until local mode has left no process, socket or folder."""
        deadline = time.monotonic() + PATIENCE_S
        while self.private() or list(self.runtime.iterdir()):
            left = [command_of(one) for one in self.private()]
            assert time.monotonic() < deadline, (left, list(self.runtime.iterdir()))
            time.sleep(0.05)

    def close(self) -> None:
        """End all that still runs."""
        for one in self._started:
            one.end()
        for stray in self.private():
            with contextlib.suppress(psutil.Error):
                stray.kill()


@contextlib.contextmanager
def site(within: Sequence[str] = (), programs: Path | None = None, host: int = 0) -> Iterator[Site]:
    """A new home, ended and removed whatever happens; the arguments are those of `Site`."""
    with folder() as home:
        found = Site(home, within, programs, host)
        try:
            yield found
        finally:
            found.close()


class Cluster:
    """A site with a shared Redis, its key file, and workers started by hand."""

    def __init__(self, here: Site, redis: RedisServer, broker_url: str = "") -> None:
        self.site = here
        self.redis = redis
        self.workers: list[Started] = []
        messaging = {"redis_url": redis.url}
        if broker_url:
            messaging["broker_url"] = broker_url
        self.messaging: dict[str, dict[str, Any]] = {"messaging": messaging}
        here.configure(self.messaging)
        made = here.coord("keys", "new")
        assert made.code == 0, made.err

    def lend(self, home: Path) -> None:
        """Have runs of another home use these workers: its own configuration, the same keys."""
        data = home / ".osbench"
        data.mkdir(mode=0o700, exist_ok=True)
        for name in ("osbench.conf", "keys"):
            shutil.copy(self.site.data / name, data / name)

    def start_worker(self, *arguments: str) -> Started:
        """Start a supervisor with one process, as on a separate host; does not wait."""
        label = f"host-{len(self.workers)}"
        worker = self.site.begin("osbench-worker", "--processes", "1", "--label", label, *arguments)
        self.workers.append(worker)
        return worker

    def child_of(self, supervisor: Started) -> int:
        """Process id of the worker process of a supervisor."""
        (child,) = psutil.Process(supervisor.process.pid).children()
        return int(child.pid)

    def listed(self) -> list[dict[str, Any]]:
        """`workers --json`."""
        done = self.site.coord("workers", "--json")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        assert isinstance(found, list)
        return found

    def present(self) -> list[Heartbeat]:
        """The last heartbeat of every worker, as `workers` reads them. Raises redis.RedisError."""
        keys = Signer(Keyring.load(self.site.data / "keys"))
        with contextlib.closing(self.redis.client()) as client:
            return HeartbeatReader(client, keys).present()

    def await_idle(self, count: int) -> list[Heartbeat]:
        """Wait until exactly this number of workers is present and free."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            present = self.present()
            if len(present) == count == len(free(present)):
                return present
            assert time.monotonic() < deadline, (present, [one.said() for one in self.workers])
            time.sleep(0.05)

    def stored(self) -> set[str]:
        """Every key in Redis."""
        client = self.redis.client()
        try:
            return {key.decode() for key in client.scan_iter()}
        finally:
            client.close()

    def run_keys(self) -> set[str]:
        """Every key but those that living workers have: heartbeats."""
        names = [key.rpartition(":")[2] for key in self.stored() if "osbench:worker:" in key]
        kept = {f"osbench:worker:{name}" for name in names}
        kept |= {redis_keys.WORKERS}
        return {key for key in self.stored() - kept if not self._is_farewell(key)}

    def _is_farewell(self, key: str) -> bool:
        """The end of a run, told to a worker that could not confirm it: it expires soon."""
        if ":ctl:" not in key:
            return False
        with contextlib.closing(self.redis.client()) as client:
            return client.ttl(key) <= redis_keys.OVER_TTL_S


def free(present: Sequence[Heartbeat]) -> list[Heartbeat]:
    """Those of the workers that are idle and nobody's: one that waits in a run is idle, too."""
    return [beat for beat in present if beat.state == "idle" and not beat.run]


def by_iteration(rows: Sequence[Mapping[str, str]], *outcomes: str) -> set[int]:
    """Numbers of the iterations that ended so."""
    return {int(row["iteration"]) for row in rows if row["outcome"] in outcomes}
