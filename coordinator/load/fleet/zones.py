"""Divides a load among zones, which are labels of workers, by their shares. No I/O.

The zone of a worker is its label, or the part before the first slash. Whole numbers are apportioned
by the method of Sainte-Laguë: exact where shares of a total are whole, else within one; if the
total grows, no part shrinks. Source: M. Balinski, H. Young, Fair Representation (2001).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from osbench.common.plugin.runner import split
from osbench.common.task import WHOLE
from osbench.coordinator.formatting import plain

Ints = NDArray[np.int64]

#: Zone of workers that are in none of the zones of the load.
OTHERS = ""


def zone_of(label: str) -> str:
    """Return the zone of a worker with this label: "eu" for "eu" and for "eu/host-3"."""
    return label.partition("/")[0]


def zone_title(zone: str) -> str:
    """Return "zone eu", or the words for workers of no other zone."""
    return f"zone {plain(zone)}" if zone else "the zone of all other workers"


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Return the parts of `total`, 0 or more, by weights above 0, in their order; [] without any.

    The parts sum to `total`.
    """
    if not weights:
        return []
    in_all = sum(weights)
    # never too many: each part is rounded up by a half at most
    sure = max(0, 2 * total - len(weights))
    counts = [(sure * weight + in_all) // (2 * in_all) for weight in weights]
    while sum(counts) < total:
        counts[_next(counts, weights)] += 1
    return counts


def _next(counts: Sequence[int], weights: Sequence[int]) -> int:
    return min(range(len(weights)), key=lambda k: Fraction(2 * counts[k] + 1, weights[k]))


def deal(dues: Ints, hands: int, turn: int) -> list[Ints]:
    """Deal due times round-robin to `hands` workers, the first time to worker `turn` % `hands`.

    Returns an array per worker, by its position from 0; an array may be empty.
    """
    return [dues[(hand - turn) % hands :: hands] for hand in range(hands)]


class ZoneShares:
    """The shares of one load, or of all loads of a run, by zone; without any, workers are equal.

    A zone without workers leaves its share to the others.
    """

    def __init__(self, *loads: Mapping[str, int]) -> None:
        """`loads`: for each load the shares by zone, of `WHOLE`; {} for a load without zones."""
        self._weights: Counter[str] = Counter()
        for shares in loads if any(loads) else ():
            self._weights.update(shares)
            self._weights[OTHERS] += WHOLE - sum(shares.values())
        self._weights += Counter()
        zoned = [{**one, OTHERS: WHOLE - sum(one.values())} for one in loads if one]
        #: All zones that must have a worker, `OTHERS` too if it has a share of such a load.
        self.names = tuple(dict.fromkeys(name for one in zoned for name in one if one[name]))

    def __bool__(self) -> bool:
        return bool(self.names)

    def admits(self, label: str) -> bool:
        """Return whether a worker with this label has a share."""
        return not self.names or self._zone(label) in self._weights

    def absent(self, labels: Iterable[str]) -> list[str]:
        """Return the zones without a worker, if `labels` are the labels of all workers."""
        present = set(map(self._zone, labels))
        return [name for name in self.names if name not in present]

    def order(self, labels: Sequence[str], taken: Iterable[str]) -> Iterator[int]:
        """Yield the positions of workers in the order in which a run takes them.

        Zones without a worker come first, then the zone that has least by its share. `labels` are
        of free workers, `taken` of workers of the run. Workers without a share are left out.
        """
        have = Counter(self._zone(label) for label in taken)
        left: dict[str, list[int]] = {}
        for position, label in enumerate(labels):
            if self.admits(label):
                left.setdefault(self._zone(label), []).append(position)
        while left:
            zone = min(left, key=lambda one: self._rank(one, have[one]))
            have[zone] += 1
            yield left[zone].pop(0)
            if not left[zone]:
                del left[zone]

    def _rank(self, zone: str, workers: int) -> tuple[bool, Fraction]:
        filled = Fraction(2 * workers + 1, self._weights[zone] or 1)
        return workers > 0 or zone not in self.names, filled

    def split(
        self, total: int, labels: Sequence[str], capacity: Sequence[int], least: int = 0
    ) -> list[int]:
        """Split virtual users by share, and within a zone as evenly as capacities allow.

        `labels` and `capacity`, of each worker in order. A zone whose workers can carry less than
        its share gets less, and the sum is below `total`. Each zone gets `least` users or more if
        the total suffices.
        """
        parts = [0] * len(labels)
        weights, places = self._parts(labels)
        least = min(least, total // len(weights))
        for more, of_zone in zip(
            apportion(total - least * len(weights), weights), places, strict=True
        ):
            users = least + more
            found = split(users, [capacity[k] for k in of_zone])
            for position, many in zip(of_zone, found, strict=True):
                parts[position] = many
        return parts

    def deal(self, dues: Ints, labels: Sequence[str], first: int) -> list[Ints]:
        """Deal due times of arrivals, in order, to workers: by share, and in turn within a zone.

        `first`: the number of the first arrival in the load, from 1, by which later calls go on
        where earlier ones ended. Returns an array for each of `labels`; it may be empty.
        """
        weights, places = self._parts(labels)
        before = apportion(first - 1, weights)
        after = apportion(first - 1 + len(dues), weights)
        turns = [
            (2 * np.arange(low, high) + 1) / weight
            for low, high, weight in zip(before, after, weights, strict=True)
        ]
        zones = np.repeat(np.arange(len(weights)), [len(one) for one in turns])
        if len(turns) > 1:
            zones = zones[np.argsort(np.concatenate(turns), kind="stable")]
        hands = [dues[:0]] * len(labels)
        for zone, (had, of_zone) in enumerate(zip(before, places, strict=True)):
            for position, hand in zip(
                of_zone, deal(dues[zones == zone], len(of_zone), had + 1), strict=True
            ):
                hands[position] = hand
        return hands

    def _parts(self, labels: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Return the weights of the zones that have workers, and the positions of these workers.

        If no zone has any, all workers are one zone.
        """
        places: dict[str, list[int]] = {}
        for position, label in enumerate(labels):
            if self.names and self.admits(label):
                places.setdefault(self._zone(label), []).append(position)
        if not places:
            return [1], [list(range(len(labels)))]
        return [self._weights[zone] for zone in places], list(places.values())

    def _zone(self, label: str) -> str:
        return zone if (zone := zone_of(label)) in self.names else OTHERS


#: Of loads without zones.
NO_ZONES = ZoneShares()
