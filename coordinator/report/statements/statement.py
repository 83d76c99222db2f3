"""A statement on a workload: a label and a text, whose parts have styles."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Look(enum.Enum):
    """Style of a part of a statement; terminal and page choose its colour."""

    PLAIN = enum.auto()
    #: A main result.
    STRONG = enum.auto()
    GOOD = enum.auto()
    #: Not as requested, but not the generator's fault; and a failure.
    WARNING = enum.auto()
    BAD = enum.auto()
    #: Advice.
    PALE = enum.auto()


class Phrase(NamedTuple):
    """A stretch of text in one style, as part of a statement."""

    text: str
    look: Look = Look.PLAIN


class Statement(NamedTuple):
    """A fact on a workload, as a line; successive statements with the same label form a group."""

    label: str
    phrases: tuple[Phrase, ...]
    #: The page says it in its table of further figures, since it has no other place for it.
    on_page: bool = False
    #: The short report says it, although nothing in it looks wrong.
    in_short: bool = False

    @property
    def matters(self) -> bool:
        """Return whether the short report says it: something is wrong, or it is a result."""
        looks = {phrase.look for phrase in self.phrases}
        return self.in_short or not looks.isdisjoint((Look.WARNING, Look.BAD))

    @property
    def text(self) -> str:
        """The complete text, without styles."""
        return "".join(one.text for one in self.phrases)


def statement_of(
    label: str,
    text: str,
    look: Look = Look.PLAIN,
    *,
    on_page: bool = False,
    in_short: bool = False,
) -> Statement:
    """Return a statement with one style.

    `on_page`: the HTML page also shows it, among further figures. `in_short`: the short report of
    the terminal shows it, too.
    """
    return Statement(label, (Phrase(text, look),), on_page, in_short)


def each(
    label: str, texts: Iterable[str], *, on_page: bool = False, in_short: bool = False
) -> Iterator[Statement]:
    """Return an iterator of a statement per text, all with the same label, in the plain style."""
    return (statement_of(label, text, on_page=on_page, in_short=in_short) for text in texts)
