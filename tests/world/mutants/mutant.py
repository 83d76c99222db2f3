"""What a mutant is: the rule, what takes its place, and the faults that show that it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from osbench.common.protocol import timers

#: An object of the product, the name of one of its attributes, and what takes its place.
Change = tuple[Any, str, Any]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A rule that is left out."""

    name: str
    #: What the product does.
    rule: str
    changes: Callable[[], Sequence[Change]]
    #: Faults of the schedules that look for it; None: any.
    faults: tuple[str, ...] | None
    #: Other rules that keep the promises without this one: what breaks without all of them, and
    #: not without these alone, shows it.
    behind: tuple[str, ...]
    #: Why no schedule shows it; "" where one does.
    unseen: str


#: By name.
MUTANTS: dict[str, Mutant] = {}


def mutant(
    name: str,
    rule: str,
    *,
    faults: tuple[str, ...] | None = None,
    behind: tuple[str, ...] = (),
    unseen: str = "",
) -> Callable[[Callable[[], Sequence[Change]]], Callable[[], Sequence[Change]]]:
    """Register what takes the place of a rule."""

    def register(changes: Callable[[], Sequence[Change]]) -> Callable[[], Sequence[Change]]:
        assert name not in MUTANTS, name
        MUTANTS[name] = Mutant(
            name=name, rule=rule, changes=changes, faults=faults, behind=behind, unseen=unseen
        )
        return changes

    return register


def timers_with(**changed: float) -> SimpleNamespace:
    """The timers of the protocol, some of them changed."""
    return SimpleNamespace(**{**vars(timers), **changed})


@contextmanager
def without(*names: str) -> Iterator[None]:
    """The product without some of its rules."""
    before: list[Change] = []
    try:
        for name in names:
            for owner, attribute, value in MUTANTS[name].changes():
                # of a class, the descriptor itself
                known = vars(owner)[attribute]
                before.append((owner, attribute, known))
                setattr(owner, attribute, value)
        yield
    finally:
        for owner, attribute, known in reversed(before):
            setattr(owner, attribute, known)
