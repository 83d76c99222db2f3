"""A group of a seed while it is made: objects that are there, missing, or double; the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from osbench.common.errors import KindError
from osbench.common.secrets.masking import error_text
from osbench.edges.openstack.common.resource_names import in_seed, of_seed, seeded_as
from osbench.edges.openstack.coordinator.resources import beginning_with, names_of
from osbench.edges.openstack.seeding.seed_maker import (
    ABSENT,
    BROKEN,
    READY,
    UNFINISHED,
    SeedEntry,
    SeedMaker,
    SeedObject,
)


class SeedGroup:
    """A group of a seed: its objects by number, and the account of the command.

    `planned` is the sum of `existing`, `made`, `failed` and `not_tried` at any time.
    """

    def __init__(self, seed: str, maker: SeedMaker) -> None:
        self.entry: SeedEntry = maker.entry
        self.maker = maker
        #: Number of objects that were there and ready, and of objects made or finished.
        self.existing = 0
        self.made = 0
        self.failed = 0
        #: Objects with higher numbers than the file wants.
        self.beyond = 0
        #: Surplus objects of a name that were removed.
        self.doubles = 0
        #: Messages of failures with their number.
        self.errors: Counter[str] = Counter()
        #: Ids of objects that are ready, by number.
        self.ids: dict[int, str] = {}
        self._seed = seed
        #: Number of planned objects in the group that these belong to; 0 for none.
        self._parents = 0
        self._listed: dict[int, list[Mapping[str, Any]]] = {}

    @property
    def planned(self) -> int:
        """The number of objects that the file wants."""
        return self.entry.count

    @property
    def not_tried(self) -> int:
        """The number of missing objects for which no creation was sent."""
        return self.planned - self.existing - self.made - self.failed

    @property
    def complete(self) -> bool:
        """Whether all planned objects are there and ready."""
        return self.existing + self.made == self.planned

    @property
    def names(self) -> tuple[str, str]:
        """The names of the first and the last planned object."""
        group = self.entry.group
        return in_seed(self._seed, group, 1), in_seed(self._seed, group, self.planned)

    def look(self) -> None:
        """List the objects of the group in the cloud; replaces the former list.

        Raises the errors of `Cloud.document`.
        """
        kind, found = self.maker.kind, dict[int, list[Mapping[str, Any]]]()
        beyond: set[str] = set()
        for one in beginning_with(kind, self.maker.cloud, of_seed(self._seed)):
            if self.maker.state(one, "") == ABSENT:
                continue
            numbers = {
                known[1]
                for name in names_of(one, kind)
                if (known := seeded_as(name, self._seed)) and known[0] == self.entry.group
            }
            for number in numbers:
                if number > self.planned:
                    beyond.add(kind.identity(one))
                else:
                    found.setdefault(number, []).append(one)
        self.beyond = len(beyond)
        self._listed = {
            number: sorted(objects, key=self._rank) for number, objects in found.items()
        }
        self.ids = {
            number: kind.identity(objects[0])
            for number, objects in self._listed.items()
            if self.maker.state(objects[0], "") == READY
        }

    def _rank(self, one: Mapping[str, Any]) -> tuple[int, str, str]:
        # the same object is first in each listing: others may belong to it
        state = (READY, UNFINISHED, BROKEN).index(self.maker.state(one, ""))
        created_at = str(one.get("created_at") or one.get("created") or "")
        return state, created_at, self.maker.kind.identity(one)

    def surplus(self) -> list[str]:
        """Return the ids of objects whose name another object has that stays."""
        kind = self.maker.kind
        return [kind.identity(one) for several in self._listed.values() for one in several[1:]]

    def join(self, parent: SeedGroup) -> None:
        """Belong to the objects of another group from now on."""
        self._parents = parent.planned

    def parent_of(self, number: int) -> int:
        """Return the number of the object that object `number` belongs to: they take turns."""
        return (number - 1) % max(1, self._parents) + 1

    def unready(self, parents: Mapping[int, str] | None) -> list[SeedObject]:
        """Return the objects that are missing or not ready, as of the last list; sets `ids`.

        `parents`: ids of the objects that these belong to, by number; None if to none. An object
        whose parent is missing is left out. Asks the cloud about objects that are there, if the
        list does not show their state.
        """
        every = [
            SeedObject(
                number=number,
                name=in_seed(self._seed, self.entry.group, number),
                parent=(parents or {}).get(self.parent_of(number), ""),
            )
            for number in range(1, self.planned + 1)
        ]
        self.maker.inspect([one for one in every if one.number in self._listed])
        self.ids, found = {}, []
        for one in every:
            objects = self._listed.get(one.number)
            state = self.maker.state(objects[0], one.parent) if objects else ABSENT
            identity = self.maker.kind.identity(objects[0]) if objects else ""
            if state == READY:
                self.ids[one.number] = identity
            elif parents is None or one.parent:
                one.identity = identity if state == UNFINISHED else ""
                one.replaces = identity if state == BROKEN else ""
                found.append(one)
        return found

    def settle(
        self,
        done: Iterable[SeedObject],
        failed: Iterable[tuple[SeedObject, Exception | str]],
        *,
        listed: bool = True,
    ) -> None:
        """Account for the objects that were tried; `listed`: by the last list, else by responses.

        With the list, a failure whose object is ready, as after a lost response, counts as made.
        """
        unlisted = "it was made, and the list does not show it as ready"
        for one, error in (*((one, unlisted) for one in done), *failed):
            good = one.number in self.ids if listed else error is unlisted
            if good:
                self.made += 1
            else:
                self.fail(one, error)

    def fail(self, one: SeedObject, error: Exception | str) -> None:
        """Count the failure of an object, with its reason without ids and names."""
        self.failed += 1
        reason = error if isinstance(error, str) else error_text(error)
        if isinstance(error, KindError):
            reason = error.kind
        self.errors[reason.replace(one.name, "*").strip().partition("\n")[0]] += 1
