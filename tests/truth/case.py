"""A case of the truth suite: what is planted, and the checks that know the right values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truth.checks import Check
from truth.planting import Planting, Seen, play


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cause or a value that is known beforehand."""

    name: str
    #: In words, for the table.
    planted: str
    planting: Planting
    checks: Sequence[Check]

    @property
    def right(self) -> str:
        """The right values in words."""
        return "; ".join(check.right for check in self.checks)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Result of a case."""

    case: Case
    #: Output of the product, a part for each check, with `!!` before what is wrong.
    printed: str
    is_right: bool


def judge(case: Case, seen: Seen, *, lenient: bool = False) -> Row:
    """Compare what a run has left with what is right; `lenient`: without what is timed."""
    wanted = [check for check in case.checks if not (lenient and check.is_timed)]
    found = [check.look(seen) for check in wanted]
    printed = "; ".join(said if is_right else f"!! {said}" for said, is_right in found)
    return Row(case=case, printed=printed, is_right=all(is_right for _, is_right in found))


def examine(case: Case, *, lenient: bool = False) -> Row:
    """Play a case and judge it; `lenient`: on a machine that may be late."""
    try:
        seen = play(case.planting, lenient=lenient)
    except Exception as error:  # noqa: BLE001 - the other cases are played all the same
        return Row(case=case, printed=f"!! {type(error).__name__}: {error}", is_right=False)
    return judge(case, seen, lenient=lenient)
