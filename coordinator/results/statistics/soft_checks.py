"""Soft checks of iterations (checks that do not fail the iteration): passes and failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from osbench.common.plugin.scenario import CHECK_CHARS, CHECKS
from osbench.common.protocol.unpacking import unpack

#: Distinct checks at most; names built from data are unbounded.
NAMES = 500
#: Name of all further checks.
OTHER = "(other checks)"
#: Counts of one iteration are below it.
_END = 2**32

#: Numbers of iterations, and the packed outputs of each.
Outputs = Iterable[tuple[int, tuple[bytes, ...]]]


def made_checks(outputs: Outputs) -> Iterator[tuple[int, str, int, int]]:
    """Yield number of the iteration, name, passes and failures of each check in an iteration."""
    for number, packed in outputs:
        for one in packed:
            try:
                output = unpack(one)
            except ValueError:
                continue
            match output:
                case {"kind": kind, "item": dict(item)} if kind == CHECKS:
                    for name, counts in item.items():
                        match counts:
                            case [int(held), int(failed)] if held | failed in range(_END):
                                yield number, str(name)[:CHECK_CHARS], held, failed


class SoftChecks:
    """Counts how often each soft check passed and failed, by name.

    Checks beyond `NAMES` names are counted together as `OTHER`.
    """

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}

    def add(self, outputs: Outputs) -> None:
        """Count the soft checks among the outputs of iterations.

        Outputs of other kinds, and outputs that cannot be read, are ignored.
        """
        for _, name, held, failed in made_checks(outputs):
            self._count(name, held, failed)

    def _count(self, name: str, held: int, failed: int) -> None:
        if name not in self.counts and len(self.counts) >= NAMES:
            name = OTHER
        counts = self.counts.setdefault(name, [0, 0])
        counts[0] += held
        counts[1] += failed
