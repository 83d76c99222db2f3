"""What goes wrong, and what an attacker does who can write to Redis and has not the key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from property.protocol_model.messages_model import (
    JUNK,
    Batch,
    Beat,
    Control,
    Key,
    Message,
    Offer,
    SpecificationModel,
)

if TYPE_CHECKING:
    from property.protocol_model.world import World

#: Faults that every schedule draws from.
FAULTS = (
    "kill",
    "pause",
    "kill-coordinator",
    "pause-coordinator",
    "hang",
    "rollback",
    "delete",
    "flush",
    "replay",
    "shuffle",
    "reply",
    "delay",
)
#: Faults outside what the protocol can stand: two coordinators on copies of one disk; clocks that
#: stand still while their hosts are paused.
BEYOND = ("fork", "freeze")
#: Workers of a schedule at most.
WORKERS = 8


class Faults:
    """Does one thing at a time to a world."""

    def __init__(self, world: World, kinds: frozenset[str]) -> None:
        self._world, self._chance, self._redis = world, world.chance, world.redis
        self.kinds = kinds
        acts = {
            "kill": self._kill,
            "pause": self._pause,
            "kill-coordinator": self._kill_coordinator,
            "pause-coordinator": self._pause_coordinator,
            "fork": self._fork,
            "hang": self._hang,
            "rollback": self._roll_back,
            "delete": self._delete,
            "flush": self._flush,
            "replay": self._replay_some,
            "shuffle": self._shuffle,
        }
        self._acts = [acts.get(kind) for kind in sorted(kinds)]
        self._redis.failing = 0.05 if "reply" in kinds else 0.0
        self._redis.delaying = 0.05 if "delay" in kinds else 0.0

    def strike(self) -> None:
        """Do something, or nothing."""
        act = self._chance.choice(self._acts) if self._acts else None
        if act is not None:
            act()

    def replay(self) -> None:
        """Put something that was once signed to where it fits, or to where it does not."""
        message = self._signed()
        name = self._chance.choice(self._world.incarnations)
        run = self._chance.choice(sorted(self._world.plans))
        if isinstance(message, Control | Offer):
            other = self._chance.choice(self._redis.seen[Control] or [message])
            places: tuple[Key, ...] = (("control", run, other.mid), ("offer", name))
            self._redis.keys[self._chance.choice(places)] = message
        elif isinstance(message, Beat):
            self._redis.keys["beat", name] = message
        elif isinstance(message, SpecificationModel):
            self._redis.keys["specification", run] = message
        else:
            batch = isinstance(message, Batch)
            self._redis.lists["batches", name] += [message] if batch else []
            self._redis.lists["results", run] += [] if batch else [message]

    def _signed(self) -> Message:
        if self._chance.random() > 0.95 or not self._redis.seen:
            return JUNK
        kinds = [kind for kind, messages in self._redis.seen.items() if messages]
        return self._chance.choice(self._redis.seen[self._chance.choice(kinds)])

    def _kill(self) -> None:
        up = [worker for worker in self._world.workers if worker.alive]
        if up and len(self._world.workers) < WORKERS:
            self._chance.choice(up).kill(supervised=self._chance.random() < 0.5)
            self._world.hire()

    def _pause(self) -> None:
        up = [worker for worker in self._world.workers if worker.alive]
        if not up:
            return
        worker = self._chance.choice(up)
        if worker.paused:
            worker.wake()
        else:
            worker.pause(clock_stops="freeze" in self.kinds)

    def _some_coordinator(self) -> Any:
        return self._chance.choice(list(self._world.coordinators.values()))

    def _kill_coordinator(self) -> None:
        coordinator = self._some_coordinator()
        if coordinator.alive and not coordinator.done:
            coordinator.crash()
            self._world.resume_in(coordinator.plan.run, self._chance.choice((0.5, 3.0, 15.0)))

    def _pause_coordinator(self) -> None:
        coordinator = self._some_coordinator()
        coordinator.paused = not coordinator.paused

    def _fork(self) -> None:
        coordinator = self._some_coordinator()
        if coordinator.alive and not coordinator.done:
            self._world.fork(coordinator)

    def _hang(self) -> None:
        self._redis.hung_until = self._world.now + self._chance.choice((0.5, 3.0, 8.0))

    def _roll_back(self) -> None:
        if self._redis.snapshots:
            self._redis.restore(self._chance.choice(self._redis.snapshots))

    def _flush(self) -> None:
        if self._chance.random() < 0.3:
            self._redis.flush()

    def _keys(self) -> list[Key]:
        lists = self._redis.lists
        return [*self._redis.keys, *(key for key in lists if lists[key])]

    def _delete(self) -> None:
        keys = self._keys()
        key = self._chance.choice(keys) if keys else None
        if key in self._redis.keys:
            del self._redis.keys[key]
        elif key is not None:
            entries = self._redis.lists[key]
            entries.pop(self._chance.randrange(len(entries)))

    def _replay_some(self) -> None:
        for _ in range(self._chance.choice((1, 5, 20))):
            self.replay()

    def _shuffle(self) -> None:
        keys = [key for key in self._keys() if key in self._redis.lists]
        if keys:
            entries = self._redis.lists[self._chance.choice(keys)]
            entries += entries[:3]
            self._chance.shuffle(entries)
