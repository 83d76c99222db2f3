"""Parses changes of spans as users write them: `SERVICE NAME DETAIL: -50%`, or `: 0`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from osbench.common.errors import UsageError
from osbench.coordinator.formatting import plain
from osbench.edges.traces.model.span_keys import SpanKey, fits

_PERCENT = re.compile(r"-(\d{1,3}(?:\.\d+)?) ?%\Z")
#: Names that an error lists.
_LISTED = 8


@dataclass(frozen=True, kw_only=True)
class SpanChange:
    """A change to predict: spans become shorter.

    A pattern selects the spans; `left` is the fraction (0 to 1) of their self time that remains.
    """

    #: Service, name and detail, or a part from the left; `*` stands for any text.
    pattern: str
    #: Remaining fraction of their self time, 0 to 1.
    left: float

    def matches(self, key: SpanKey) -> bool:
        """Return whether the pattern selects a key.

        It has service or project, name and, if it has one, detail; `*` stands for any text. Several
        spaces equal one.
        """
        pattern = _plain(self.pattern)
        return any(fits(pattern, _plain(text)) for text in _forms(key))

    def unknown(self, known: Sequence[SpanKey]) -> str:
        """Return an error message: no key of `known` matches; with the nearest or first keys."""
        texts = list(dict.fromkeys(map(str, known)))
        near = difflib.get_close_matches(self.pattern, texts, _LISTED, 0.5)
        words = [word.lower() for word in re.findall(r"\w{3,}", self.pattern)]
        near += [text for text in texts if any(word in text.lower() for word in words)]
        listed = list(dict.fromkeys(near or texts))[:_LISTED]
        if not listed:
            return f"--what-if: no span matches {self.pattern!r}: these traces have no spans"
        which = "the nearest are" if near else "there are"
        names = "; ".join(plain(text, 200) for text in listed)
        return f"--what-if: no span matches {plain(self.pattern, 200)!r}; {which} {names}"


def read_change(text: str) -> SpanChange:
    """Parse a change: a pattern, a colon, and `0` or `-N%` with N above 0 and up to 100.

    Raises UsageError.
    """
    pattern, colon, amount = text.rpartition(":")
    pattern, amount = pattern.strip(), amount.strip()
    if not colon or not pattern:
        raise UsageError(
            f"--what-if {text!r}: write SPAN: -50%, or SPAN: 0 for a span that takes no time"
        )
    if amount == "0":
        return SpanChange(pattern=pattern, left=0.0)
    found = _PERCENT.match(amount)
    if found is None or not 0 < float(found[1]) <= 100:
        raise UsageError(
            f"--what-if {text!r}: {amount!r} must be between -0% and -100%, such as -50%, or 0"
        )
    return SpanChange(pattern=pattern, left=1 - float(found[1]) / 100)


def _forms(key: SpanKey) -> list[str]:
    """Return "SERVICE NAME" and "PROJECT/NAME", each without and with the detail."""
    project = key.who.partition("/")[0]
    wholes = [f"{key.who} {key.what}", f"{project}/{key.what}"]
    return [
        form for whole in wholes for form in (whole, f"{whole} {key.about}" if key.about else whole)
    ]


def _plain(text: str) -> str:
    return " ".join(text.split())
