"""Workers, coordinators, a Redis, a broker and a disk under one virtual time, from a seed."""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from osbench.common.config.config import load
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol import broker as broker_module
from osbench.common.protocol.keyring import ADOPT_S, KEPT, Keyring
from osbench.coordinator.load.run import lifecycle, load_clock, services
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.plan import RunOptions, RunPlan, plan_run
from osbench.coordinator.load.run.resumption import plan_file
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.results.storage import checkpoint
from osbench.coordinator.task.taskfile import parse
from osbench.worker.process import will_sender
from osbench.worker.session import workloads
from world import coordinators, event_loop, present, shares, simulated_disk
from world.coordinators import SimulatedRun
from world.fibers import EPOCH_S, S, Scheduler
from world.service import Service
from world.simulated_broker import SimulatedBroker
from world.simulated_disk import SimulatedDisk
from world.wire import Client, RedisServer
from world.workers import WorkerProcess

#: Scenarios of all worlds; a resumed run compares their source with that of its beginning.
PLUGINS = Plugins([str(Path(__file__).parent / "scenarios")])
#: Keys of all worlds.
KEYRING = Keyring([hashlib.sha256(b"world").digest()])
#: What a coordinator says where its workers do not hear of the end of the run.
_UNTOLD = ("do not hear that the run is over", "the run's keys could not be removed")
#: What it says where a run that was interrupted does not wait for Redis.
_GIVEN_UP = "and the run was interrupted"
#: For how long a coordinator does not look any more what has become of its last words.
LAST_WORDS_NS = S // 2
#: A folder in memory, where there is one.
_MEMORY = Path("/dev/shm")


class World:
    """One schedule. Only one world is played at a time."""

    def __init__(
        self,
        seed: int,
        *,
        trace: bool = False,
        broker_apart: bool = False,
        key_file: bool = False,
    ) -> None:
        """`trace`: keep all that happens; `broker_apart`: the broker is not that Redis.

        `key_file`: keys lie in a file, and may be rotated.
        """
        self.seed = seed
        self.scheduler = Scheduler(seed)
        present.begin(self.scheduler)
        present.WORLD = self
        self.redis = RedisServer(self.scheduler)
        self.broker = SimulatedBroker(self.redis, apart=broker_apart)
        self.disk = SimulatedDisk()
        self.service = Service()
        self.runs: dict[str, SimulatedRun] = {}
        self.workers: list[WorkerProcess] = []
        #: Labels that workers have in turn, if they are not hired with one.
        self.labels: Sequence[str] = ("",)
        #: `[worker] coordinator_lost_s` of workers, seconds.
        self.coordinator_lost_s = 30.0
        #: What the product logged with a traceback.
        self.internal_errors: list[str] = []
        #: All that happens, if it is kept.
        self.trace: list[str] | None = [] if trace else None
        self._digest = hashlib.sha256()
        self.folder = Path(
            tempfile.mkdtemp(prefix="osbench-world-", dir=_MEMORY if _MEMORY.is_dir() else None)
        )
        self.conf = load([])
        self.conf.set_override("data_dir", str(self.folder))
        self.conf.set_override("redis_url", "redis://memory", "messaging")
        self.plugins = PLUGINS
        self.rotations = 0
        #: None: the keys never change.
        self._key_file = self.folder / "keys" if key_file else None
        if self._key_file is not None:
            KEYRING.save(self._key_file)
            self._date_keys()

    def keyring(self) -> Keyring:
        """The keys of a process that starts now."""
        return KEYRING if self._key_file is None else Keyring.load(self._key_file)

    def rotate_keys(self, secret: bytes) -> None:
        """Put a new key before the others; all hosts have had the file for most of a minute."""
        if self._key_file is not None:
            self.rotations += 1
            known = Keyring.load(self._key_file)
            Keyring([secret, *known._secrets][:KEPT]).save(self._key_file)
            self._date_keys()

    def _date_keys(self) -> None:
        assert self._key_file is not None
        written = EPOCH_S * S + self.scheduler.now - int((ADOPT_S - 5) * S)
        os.utime(self._key_file, ns=(written, written))

    def hire(self, label: str | None = None) -> WorkerProcess:
        """One more worker."""
        many = len(self.workers)
        label = self.labels[many % len(self.labels)] if label is None else label
        found = WorkerProcess(self, f"w{many}", label)
        self.workers.append(found)
        return found

    def add(
        self,
        *,
        at_s: float = 0.0,
        workers: int = 1,
        runner: dict[str, Any] | None = None,
        scenario: str = "work",
        args: dict[str, Any] | None = None,
        idempotent: bool = False,
        join: bool = False,
        zones: Mapping[str, float] | None = None,
        **workload: Any,
    ) -> SimulatedRun:
        """A run that begins at an instant; `join`: it takes up to `workers` as they come.

        `zones`: percents of the load by zone of the workers.
        """
        subtask = {
            "title": "simulated",
            "scenario": {f"Simulated.{scenario}": args or {}},
            "runner": runner or {"constant": {"times": 1000, "concurrency": 20}},
            **({"idempotent": True} if idempotent else {}),
            **({"workers": [{"zone": z, "share": of} for z, of in zones.items()]} if zones else {}),
            **workload,
        }
        document = {"version": 2, "title": "simulated", "subtasks": [subtask]}
        return self.begin(document, at_s=at_s, workers=workers, idempotent=idempotent, join=join)

    def begin(
        self,
        document: dict[str, Any],
        *,
        at_s: float,
        workers: int,
        idempotent: bool = False,
        join: bool = False,
    ) -> SimulatedRun:
        """A run of a task that begins at an instant."""
        run_id = f"20270115-{len(self.runs):06}-{self.seed % 65536:04x}"
        options = RunOptions(workers=workers, join=join, run_id=run_id)
        plan = plan_run(parse(document, "-"), self.plugins, None, self.conf, options)
        run = SimulatedRun(self, plan, idempotent=idempotent)
        self.runs[run_id] = run
        self.scheduler.at(int(at_s * S), run.begin)
        return run

    def note(self, kind: str, text: str) -> None:
        """Something has happened."""
        line = f"{self.scheduler.now} {kind} {text}".replace(str(self.folder), "DATA")
        self._digest.update(line.encode() + b"\n")
        if self.trace is not None:
            self.trace.append(line)

    @property
    def digest(self) -> str:
        """Of all that has happened, and of journals and blocks."""
        found = self._digest.copy()
        for run in self.runs.values():
            for name in ("journal", "blocks"):
                path = run.folder / name
                found.update(path.read_bytes() if path.exists() else b"")
        return found.hexdigest()[:16]

    def disk_was_full(self, folder: Path) -> None:
        """A run directory could not be written to: one that was interrupted waits no longer."""
        for run in self.runs.values():
            if run.folder == folder and run.interrupts:
                run.given_up = True

    def run_over(self) -> None:
        """A run is over: perhaps it was the last one."""
        self.scheduler.stopped = all(run.over for run in self.runs.values())

    def processes(self) -> Iterator[Any]:
        """All processes that run, workers before coordinators."""
        yield from (worker.process for worker in self.workers if worker.is_up)
        for run in self.runs.values():
            if run.coordinator is not None and run.is_coordinated:
                yield run.coordinator.process

    def play(self, until_s: float) -> bool:
        """Play to the end of all runs, or to an instant; whether all runs are over."""
        self.scheduler.run(int(until_s * S))
        return all(run.over for run in self.runs.values())

    def play_release(self, most_s: float) -> bool:
        """Play on until no worker waits for a coordinator; whether that is so.

        One that sleeps has as long once it is awake; the others have ended by then.
        """
        released = self._released(most_s)
        asleep = [one for one in self.workers if one.is_up and self._sleeps(one)]
        if asleep:
            for one in self.workers:
                one.process.alive = one in asleep
            self.scheduler.run(max(one.process.paused_until for one in asleep))
            released = self._released(most_s) and released
        return released

    def _sleeps(self, one: WorkerProcess) -> bool:
        return one.process.paused_until > self.scheduler.now

    def held(self) -> list[WorkerProcess]:
        """Workers that wait for a coordinator although they could know that there is none."""
        return [one for one in self.workers if self._is_held(one)]

    def _is_held(self, one: WorkerProcess) -> bool:
        """It serves a run that is over, or keeps results though it was told that the run is."""
        serves = any(self.runs[run].over_at is not None for run in one.serves())
        return serves or any(
            self._is_told(run) and not self._slept_unknown(one, run, mid)
            for run, mid in one.awaited()
        )

    def _slept_unknown(self, one: WorkerProcess, run_id: str, mid: str) -> bool:
        """It joined while the disk was full, and slept until nobody could hear of it any more."""
        run = self.runs[run_id]
        known = run.services is not None and mid in run.services.accounts.memberships
        return not known and run.over_at is not None and one.process.paused_until > run.over_at

    def _is_told(self, run_id: str) -> bool:
        """Nobody has removed from Redis what tells of the end of a run."""
        run = self.runs[run_id]
        # what is lost with the last words is not told again
        kept = self.redis.lost_keys_at + LAST_WORDS_NS
        # a journal that has lost records does not know whom to tell
        left = run.untold or run.damaged or run.restored
        return not left and (run.over_at is None or run.over_at > kept)

    def _released(self, most_s: float) -> bool:
        end = self.scheduler.now + int(most_s * S)
        while any(not self._sleeps(one) for one in self.held()):
            if self.scheduler.now >= end:
                return False
            self.scheduler.run(min(end, self.scheduler.now + S))
        return True

    def __enter__(self) -> World:
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        self.scheduler.close()
        for file in list(self.disk.files.values()):
            file.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        gc.enable()


class _Log(logging.Handler):
    """Notes what the product logs; what it logs with a traceback is an internal error."""

    def emit(self, record: logging.LogRecord) -> None:
        world = present.WORLD
        fiber = present.fiber()
        if world is None or fiber is None:
            return
        text = record.getMessage()
        run = world.runs.get(fiber.process.name.rpartition("-")[0])
        if run is not None and any(sign in text for sign in _UNTOLD):
            run.untold = True
        if run is not None and _GIVEN_UP in text:
            run.given_up = True
        if record.exc_info:
            world.internal_errors.append(logging.Formatter("%(message)s").format(record))
        world.note(record.levelname, text)


def _connect(url: str, timeout_s: float) -> Client:
    return Client(present.world().redis, timeout_s)


_open_services = lifecycle.open_services


def _watched_services(plan: RunPlan, connection: Connection, *args: Any) -> RunServices:
    found = _open_services(plan, connection, *args)
    present.world().runs[plan.run_id].services = found
    return found


# the doors through which the product leaves its process
coordinators.install()
event_loop.install()
shares.install()
simulated_disk.install()
services.connect = _connect  # type: ignore[attr-defined, assignment]
will_sender.connect = _connect  # type: ignore[attr-defined, assignment]
will_sender.Keyring = SimpleNamespace(load=lambda _: present.world().keyring())  # type: ignore[misc, assignment]
broker_module.sending_application = lambda _: present.world().broker.application()  # type: ignore[assignment, return-value]
lifecycle.open_services = _watched_services  # type: ignore[assignment]
load_clock.boot_id = lambda: present.fiber().process.boot  # type: ignore[union-attr]
# figures of a run that goes on cost more than all else in a second of it
checkpoint.INTERVAL_S = 10.0
# each process would import the same plug-ins again
plan_file.Plugins = lambda *_: PLUGINS  # type: ignore[attr-defined]
# a full collection before each workload is no part of the protocol
workloads._exempt_from_garbage_collection = lambda **_: None  # type: ignore[attr-defined]
_logger = logging.getLogger("osbench")
_logger.handlers[:] = [_Log()]
_logger.propagate = False
