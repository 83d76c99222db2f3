"""What happens to a world: a fault strikes one thing, by chance, for a while or for good."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from osbench.common.errors import OsbenchError
from osbench.common.protocol.keyring import KEPT
from osbench.coordinator.results.storage.frames import read_frames
from world.fibers import S

if TYPE_CHECKING:
    from world.coordinators import SimulatedRun
    from world.workers import WorkerProcess
    from world.world import World

#: Strikes; returns False where there is nothing to strike.
Fault = Callable[["Striker"], "bool | None"]

#: Every fault that can be asked for, by its name.
FAULTS: dict[str, Fault] = {}
#: A worker that cannot deliver for longer has lost what it holds of a run that ends.
LONG_CUT_NS = 9 * S
#: How long a run directory is not what it was, seconds.
MENDED_S = 6.0
#: Most workers of a world.
WORKERS_MOST = 8


def _fault(name: str) -> Callable[[Fault], Fault]:
    def register(fault: Fault) -> Fault:
        FAULTS[name] = fault
        return fault

    return register


#: Files of a run directory, by name.
Files = dict[str, bytes]


def files_of(folder: Path) -> Files:
    """What is in a run directory, but for its lock."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in ("lock", "reserve")
    }


def restore(folder: Path, files: Files) -> None:
    """Have these files in a run directory, and no others."""
    for name in files_of(folder):
        (folder / name).unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
        # some hold secrets
        (folder / name).chmod(0o600)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class Striker:
    """Chooses what is struck."""

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance
        #: What was in Redis at some instants, and in the run directories that had a coordinator.
        self.snapshots: list[Any] = []
        self.backups: dict[str, list[Files]] = {}

    def strike(self, name: str) -> bool:
        """Have a fault happen; whether there was anything to strike."""
        struck = FAULTS[name](self) is not False
        if struck:
            self.world.note("strike", name)
        return struck

    def remember(self, *, folders: bool) -> None:
        """Keep what is in Redis now, for a rollback, and in run directories, for a restore."""
        self.snapshots.append(self.world.redis.redis.snapshot())
        for run in self.world.runs.values() if folders else ():
            if run.is_coordinated and (run.folder / "plan").exists():
                self.backups.setdefault(run.plan.run_id, []).append(files_of(run.folder))

    def until(self, *seconds: float) -> int:
        """An instant in one of some times."""
        return self.world.scheduler.now + int(self.chance.choice(seconds) * S)

    def worker(self) -> WorkerProcess | None:
        """One that runs."""
        up = [one for one in self.world.workers if one.is_up]
        return self.chance.choice(up) if up else None

    def replaceable(self) -> WorkerProcess | None:
        """One that runs, where another one may take its place."""
        found = self.worker()
        if found is None or found.agent is None or len(self.world.workers) >= WORKERS_MOST:
            return None
        return found

    def run(self) -> SimulatedRun | None:
        """One that has a coordinator."""
        found = [run for run in self.world.runs.values() if run.is_coordinated]
        return self.chance.choice(found) if found else None

    def lose_keys(self) -> None:
        """Redis is about to lose something: who sleeps may not hear of what was over before."""
        self.world.redis.lost_keys_at = self.world.scheduler.now

    def key(self, kind: type = object) -> bytes | None:
        """A key of Redis."""
        keys = self.world.redis.redis.keys
        found = sorted(name for name, value in keys.items() if isinstance(value, kind))
        return self.chance.choice(found) if found else None


# workers


@_fault("kill")
def _kill(striker: Striker) -> bool | None:
    one = striker.replaceable()
    if one is None:
        return False
    one.kill(supervised=striker.chance.random() < 0.5)
    striker.world.hire()
    return None


@_fault("pause")
def _pause(striker: Striker) -> bool | None:
    one = striker.worker()
    if one is None:
        return False
    one.pause(striker.chance.choice((1, 4, 12)))
    return None


@_fault("drain")
def _drain(striker: Striker) -> bool | None:
    one = striker.replaceable()
    if one is None:
        return False
    one.drain()
    striker.world.hire()
    return None


@_fault("sleep-an-hour")
def _sleep_an_hour(striker: Striker) -> bool | None:
    """A laptop lid: the worker returns when all is over, with what it had in hand."""
    one = striker.replaceable()
    if one is None:
        return False
    one.pause(3600)
    striker.world.hire()
    return None


# hosts


@_fault("cut-off")
def _cut_off(striker: Striker) -> bool | None:
    processes = list(striker.world.processes())
    if not processes:
        return False
    process, now = striker.chance.choice(processes), striker.world.scheduler.now
    if process.cut_off_until < now:
        process.cut_off_from = now
    process.cut_off_until = max(process.cut_off_until, striker.until(0.5, 3, 8))
    if process.cut_off_until - process.cut_off_from > LONG_CUT_NS:
        for worker in striker.world.workers:
            worker.hurt = worker.hurt or worker.process is process
    return None


@_fault("wall-clock")
def _wall_clock(striker: Striker) -> bool | None:
    processes = list(striker.world.processes())
    if not processes:
        return False
    step_s = striker.chance.choice((-3600, -1, 1, 3600))
    striker.chance.choice(processes).wall_ns += step_s * S
    return None


# coordinators


@_fault("kill-coordinator")
def _kill_coordinator(striker: Striker) -> bool | None:
    run = striker.run()
    if run is None:
        return False
    run.kill_coordinator(
        striker.chance.choice((0.5, 3.0, 15.0, 45.0)), host=striker.chance.random() < 0.5
    )
    return None


@_fault("pause-coordinator")
def _pause_coordinator(striker: Striker) -> bool | None:
    run = striker.run()
    if run is None or run.coordinator is None:
        return False
    process = run.coordinator.process
    process.paused_until = max(process.paused_until, striker.until(0.5, 2, 8, 15))
    return None


@_fault("second-coordinator")
def _second_coordinator(striker: Striker) -> bool | None:
    """Somebody resumes a run that is going on: the lock refuses that."""
    run = striker.run()
    if run is None:
        return False
    run.begin_second()
    return None


@_fault("interrupt")
def _interrupt(striker: Striker) -> bool | None:
    run = striker.run()
    if run is None or striker.chance.random() < 0.8:
        return False
    run.interrupt()
    if striker.chance.random() < 0.3:
        striker.world.scheduler.after(striker.chance.uniform(0.1, 3), run.interrupt)
    return None


@_fault("damage")
def _damage(striker: Striker) -> bool | None:
    """A bit of a file changes while a run has no coordinator; later the file is put right."""
    run = striker.run()
    names = [name for name in ("journal", "blocks") if run and _size(run.folder / name)]
    if run is None or run.spoilt or not names:
        return False
    right = files_of(run.folder)
    name = striker.chance.choice(names)
    wrong = bytearray(right[name])
    wrong[striker.chance.randrange(len(wrong))] ^= 1 << striker.chance.randrange(8)
    run.damaged = True
    _replaced(striker, run, right, {**right, name: bytes(wrong)})
    # a spoilt last record counts as torn: what is left is an older copy
    run.restored = run.restored or (name == "journal" and _is_readable(run.folder / name))
    return None


def _is_readable(path: Path) -> bool:
    try:
        return all(True for _ in read_frames(path))
    except OsbenchError:
        return False


@_fault("restore-backup")
def _restore_backup(striker: Striker) -> bool | None:
    """Somebody puts an older copy into the place of a run directory, and the right one back."""
    run = striker.run()
    backups = striker.backups.get(run.plan.run_id) if run is not None else None
    if run is None or run.spoilt or not backups:
        return False
    run.restored = True
    _replaced(striker, run, files_of(run.folder), striker.chance.choice(backups))
    return None


def _replaced(striker: Striker, run: SimulatedRun, right: Files, wrong: Files) -> None:
    """The coordinator dies; the next finds other files, and gets the right ones if it refuses."""
    run.kill_coordinator(striker.chance.choice((0.5, 3.0)))
    restore(run.folder, wrong)
    run.spoilt += 1

    def mend() -> None:
        # one that goes on with them has found nothing wrong yet
        if run.is_coordinated:
            striker.world.scheduler.after(1.0, mend)
            return
        run.spoilt -= 1
        if run.summary is None:
            # one that went on with them for a while has written more than there was
            run.restored = run.restored or files_of(run.folder) != wrong
            restore(run.folder, right)
            run.over_at = None
            striker.world.scheduler.after(1.0, run.begin)
        striker.world.run_over()

    striker.world.scheduler.after(MENDED_S, mend)


# keys


@_fault("rotate-keys")
def _rotate_keys(striker: Striker) -> bool | None:
    """As often as old keys are kept; who does it more often has lost messages."""
    if striker.world.rotations > KEPT - 2:
        return False
    striker.world.rotate_keys(striker.chance.randbytes(32))
    return None


# Redis


@_fault("hang")
def _hang(striker: Striker) -> None:
    striker.world.redis.hung_until = striker.until(0.5, 3, 8, 15)


@_fault("restart")
def _restart(striker: Striker) -> None:
    """It comes back with what it had saved last, or with nothing."""
    striker.lose_keys()
    server = striker.world.redis
    server.down_until = striker.until(0.2, 2)
    saved = striker.snapshots[-1] if striker.snapshots else ({}, {})
    server.redis.restore(saved)


@_fault("rollback")
def _rollback(striker: Striker) -> bool | None:
    striker.lose_keys()
    if not striker.snapshots:
        return False
    striker.world.redis.redis.restore(striker.chance.choice(striker.snapshots))
    return None


@_fault("flush")
def _flush(striker: Striker) -> bool | None:
    striker.lose_keys()
    if striker.chance.random() < 0.7:
        return False
    striker.world.redis.redis.restore(({}, {}))
    return None


@_fault("delete")
def _delete(striker: Striker) -> bool | None:
    striker.lose_keys()
    key = striker.key()
    if key is None:
        return False
    striker.world.redis.redis.delete(key)
    return None


@_fault("replay")
def _replay(striker: Striker) -> bool | None:
    """Some keys are again what they were."""
    striker.lose_keys()
    if not striker.snapshots:
        return False
    keys, _ = striker.chance.choice(striker.snapshots)
    for name in sorted(keys):
        if striker.chance.random() < 0.3 and not name.endswith(b":turns"):
            striker.world.redis.redis.keys[name] = copy.deepcopy(keys[name])
    return None


@_fault("wrong-type")
def _wrong_type(striker: Striker) -> bool | None:
    """Somebody puts another value into the place of one."""
    striker.lose_keys()
    key = striker.key()
    found = striker.world.redis.redis
    if key is None or found.is_full():
        return False
    found.delete(key)
    if striker.chance.random() < 0.5:
        found.set(key, b"something else")
    else:
        found.sadd(key, b"something else")
    return None


@_fault("redis-clock")
def _redis_clock(striker: Striker) -> None:
    striker.world.redis.step_ns += striker.chance.choice((-3600, -1, 1, 3600)) * S


@_fault("reply")
def _reply(striker: Striker) -> None:
    """From now on some commands take effect, and nobody hears of it."""
    striker.world.redis.lost_reply = 0.02


# the broker


@_fault("batches")
def _batches(striker: Striker) -> None:
    """From now on some messages are lost, come twice, or late."""
    broker = striker.world.broker
    broker.lost = broker.twice = broker.late = 0.1


@_fault("shuffle")
def _shuffle(striker: Striker) -> bool | None:
    """Messages of a queue change places, and some are there twice."""
    keys = striker.world.broker.redis.keys
    queues = sorted(name for name, value in keys.items() if isinstance(value, list))
    if not queues:
        return False
    found = keys[striker.chance.choice(queues)]
    assert isinstance(found, list)
    found += found[:3]
    striker.chance.shuffle(found)
    return None


@_fault("block")
def _block(striker: Striker) -> None:
    """An alarm: publishers are blocked."""
    striker.world.broker.blocked_until = striker.until(1, 6)


@_fault("broker-away")
def _broker_away(striker: Striker) -> bool | None:
    if not striker.world.broker.apart:
        return False
    striker.world.broker.server.hung_until = striker.until(0.5, 3, 8)
    return None


# the disk


@_fault("disk")
def _disk(striker: Striker) -> None:
    """It becomes slow, and is full for a while."""
    striker.world.disk.slowest_s = 0.3
    striker.world.disk.full_until = striker.until(0.2, 2)


# Redis once more


@_fault("redis-full")
def _redis_full(striker: Striker) -> None:
    """It is out of memory, and refuses what adds data."""
    striker.world.redis.full_until = striker.until(0.5, 3, 8)


#: Faults after which work may be lost, or left, that nobody stopped.
HURTING = frozenset({"kill", "pause", "drain", "sleep-an-hour", "interrupt"})


def calm(world: World) -> None:
    """End all faults, and have as many workers as all runs ask for."""
    world.note("calm", "")
    broker = world.broker
    for server in (world.redis, broker.server):
        server.lost_reply = 0.0
        server.hung_until = server.down_until = server.full_until = 0
    broker.lost = broker.twice = broker.late = 0.0
    broker.blocked_until = 0
    world.disk.full_until = 0
    world.disk.slowest_s = 0.002
    for process in world.processes():
        process.cut_off_until = 0
    now = world.scheduler.now
    awake = [one for one in world.workers if one.is_up and one.process.paused_until <= now]
    asked = sum(run.plan.options.workers or 1 for run in world.runs.values() if not run.over)
    for _ in range(asked - len(awake)):
        world.hire()
    # no load goes on without workers, and none begins without one of each zone
    zoned = sum(bool(run.plan.zones) for run in world.runs.values() if not run.over)
    for label in dict.fromkeys(world.labels) if zoned else ():
        for _ in range(zoned - sum(one.label == label for one in awake)):
            world.hire(label)
