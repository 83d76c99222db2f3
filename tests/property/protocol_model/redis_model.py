"""Redis as processes see it: it loses, repeats, delays, forgets, and goes back in time."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable

from property.protocol_model.messages_model import Key, Message
from property.protocol_model.rules import READ

Snapshot = tuple[dict[Key, Message], dict[Key, list[Message]]]


class RedisAway(Exception):
    """Redis did not answer; what was asked may have been done, or be done later."""


class RedisModel:
    """Keys and lists. Each method but those of the attacker may raise RedisAway."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.now = 0.0
        self.hung_until = -1.0
        #: Shares of commands that fail, and of writes that are done later.
        self.failing = self.delaying = 0.0
        self.keys: dict[Key, Message] = {}
        self.lists: dict[Key, list[Message]] = defaultdict(list)
        self.snapshots: deque[Snapshot] = deque(maxlen=4)
        #: Everything that was ever signed, by kind: an attacker has kept it.
        self.seen: dict[type, list[Message]] = defaultdict(list)
        self.sent: Counter[str] = Counter()
        self._delayed: list[tuple[float, Callable[[], None]]] = []

    def set(self, key: Key, message: Message) -> None:
        """Put a message under a key."""
        self._note(key, message)
        self._write(lambda: self.keys.__setitem__(key, message))

    def append(self, key: Key, message: Message) -> None:
        """Put a message at the end of a list."""
        self._note(key, message)
        self._write(lambda: self.lists[key].append(message))

    def get(self, *keys: Key) -> list[Message]:
        """What stands under some keys, None where there is nothing."""
        self._reach()
        return [self.keys.get(key) for key in keys]

    def pop(self, key: Key) -> Message:
        """Take the first entry of a list, None where it is empty."""
        self._reach()
        return self.lists[key].pop(0) if self.lists[key] else None

    def read(self, key: Key) -> list[Message]:
        """The first entries of a list."""
        self._reach()
        return self.lists[key][:READ]

    def length(self, key: Key) -> int:
        """Entries of a list."""
        self._reach()
        return len(self.lists[key])

    def delete(self, key: Key, entries: Iterable[Message]) -> None:
        """Take entries out of a list, wherever they stand in it."""
        self._reach()
        for entry in entries:
            if entry in self.lists[key]:
                self.lists[key].remove(entry)

    def pass_time(self, now: float) -> None:
        """Do some of what was delayed; remember now and then how everything stands."""
        self.now = now
        if self._delayed and self._chance.random() < 0.2:
            for due in [one for one in self._delayed if one[0] < now]:
                due[1]()
                self._delayed.remove(due)
        if self._chance.random() < 0.01:
            self.snapshots.append(
                (dict(self.keys), {key: list(entries) for key, entries in self.lists.items()})
            )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back in time."""
        keys, lists = snapshot
        self.keys = dict(keys)
        self.lists = defaultdict(list, {key: list(entries) for key, entries in lists.items()})

    def flush(self) -> None:
        """Forget everything."""
        self.keys.clear()
        self.lists.clear()

    def calm(self) -> None:
        """Answer from now on; what was delayed is still done."""
        self.failing = self.delaying = 0.0
        self.hung_until = -1.0

    def _note(self, key: Key, message: Message) -> None:
        self.seen[type(message)].append(message)
        self.sent[type(message).__name__] += 1

    def _reach(self) -> None:
        if self._fails():
            raise RedisAway

    def _fails(self) -> bool:
        return self.now < self.hung_until or self._chance.random() < self.failing

    def _write(self, write: Callable[[], None]) -> None:
        if self._fails():
            if self._chance.random() < 0.5:
                if self._chance.random() < 0.5:
                    write()
                else:
                    self._later(write)
            raise RedisAway
        if self._chance.random() < self.delaying:
            self._later(write)
        else:
            write()

    def _later(self, write: Callable[[], None]) -> None:
        self._delayed.append((self.now + self._chance.expovariate(0.2), write))
