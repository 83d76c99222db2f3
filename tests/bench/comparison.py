"""One line of the bench's table: osbench beside a peer, and whether the target is reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, kw_only=True)
class Target:
    """A bound of the ratio to the peer, or, without a peer, of osbench's own value."""

    bound: float
    #: The bound is the most allowed, not the least.
    at_most: bool = False

    def reached(self, value: float) -> bool:
        """Whether a value keeps the bound; one that is not a number does not."""
        return value <= self.bound if self.at_most else value >= self.bound


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Values of the same rounds: `osbench[i]` and `peer[i]` were measured next to each other."""

    #: Name by which the row is chosen.
    row: str
    #: What is measured.
    title: str
    unit: str
    osbench: tuple[float, ...]
    #: Name of the peer and its values; both empty where the target is absolute.
    peer_name: str = ""
    peer: tuple[float, ...] = ()
    #: None where nothing is promised: the measurement is all there is.
    target: Target | None = None
    #: What a reader should know of how it was measured.
    note: str = ""

    def __post_init__(self) -> None:
        if not self.osbench:
            raise ValueError(f"{self.title}: no round was measured")
        if self.peer_name and len(self.peer) != len(self.osbench):
            raise ValueError(f"{self.title}: {len(self.osbench)} rounds, {len(self.peer)} of peer")

    @property
    def ratios(self) -> tuple[float, ...]:
        """osbench / peer, round by round; empty without a peer."""
        return tuple(
            ours / theirs if theirs else math.nan
            for ours, theirs in zip(self.osbench, self.peer, strict=False)
        )

    @property
    def judged(self) -> float:
        """What the target is held against: the median ratio, or the median value."""
        return middle(self.ratios if self.peer_name else self.osbench)

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without one."""
        return self.target.reached(self.judged) if self.target else None


def middle(values: Sequence[float]) -> float:
    """The median; not a number where one of the values is not."""
    return math.nan if any(map(math.isnan, values)) else median(values)
