"""Keys by which time is summed: service, name and detail of a span. Their number is bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from osbench.edges.traces.model.critical_path import PathSegment
from osbench.edges.traces.model.spans import joined_words
from osbench.edges.traces.model.tree import Tree

#: Limits on distinct keys, and on distinct details of one kind of work.
KEYS, DETAILS = 2000, 100

OTHER = "(other)"

WAIT_SERVICE, WAIT_QUEUE = "wait for service", "wait in queue"
#: Time from the scheduled start of an iteration to its start.
LATE_START = "late start"


class SpanKey(NamedTuple):
    """Key by which times are summed: service (`who`), name (`what`) and detail (`about`) of spans.

    For waiting these are "CALLER -> CALLEE", `WAIT_SERVICE` or `WAIT_QUEUE`, and "NAME -> NAME" of
    the two spans.
    """

    who: str
    what: str
    about: str

    def __str__(self) -> str:
        return joined_words(*self)


@dataclass(frozen=True, kw_only=True)
class SpanPattern:
    """Pattern that selects keys by service and name; `*` in either stands for any text."""

    #: The service, or its first part, such as `shop` for `shop/web`.
    service: str
    #: The name, or name and detail.
    name: str

    def matches(self, key: SpanKey) -> bool:
        """Return whether the pattern selects a key.

        The pattern's service must fit the key's service, or its part before "/". The pattern's name
        must fit the key's name, or name and detail.
        """
        services = (key.who, key.who.partition("/")[0])
        names = (key.what, f"{key.what} {key.about}")
        return any(fits(self.service, one) for one in services) and any(
            fits(self.name, one) for one in names
        )


def fits(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern, in which `*` stands for any text.

    Takes linear time. Case matters, and no other character is special.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    at, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last) and at <= end):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def key_of(tree: Tree, segment: PathSegment) -> SpanKey:
    """Return the key of a segment: work of its span, or waiting for the start of another span.

    The kind of waiting is `WAIT_QUEUE` if either span is of RPC, the waiting span is a producer, or
    the awaited span a consumer; else `WAIT_SERVICE`.
    """
    span = tree.spans[segment.span]
    if segment.awaited < 0:
        return SpanKey(span.service, span.name, span.detail)
    other = tree.spans[segment.awaited]
    queued = "rpc" in (span.name, other.name) or "rpc" in span.name.split("-")
    queued = queued or span.kind == "producer" or other.kind == "consumer"
    return SpanKey(
        f"{span.service} -> {other.service}",
        WAIT_QUEUE if queued else WAIT_SERVICE,
        f"{span.name} -> {other.name}",
    )


class Vocabulary:
    """Numbers the keys of a run, from 0; bounds memory if services build names from data.

    Above `DETAILS` details of one service and name, further details become `OTHER`; above `KEYS`
    keys, all new keys become one key `OTHER`.
    """

    def __init__(self) -> None:
        self.keys: list[SpanKey] = []
        self._numbers: dict[SpanKey, int] = {}
        self._details: dict[tuple[str, str], int] = {}

    def number(self, key: SpanKey) -> int:
        """Return the number of a key, which is its position in `keys`.

        A new key is added; above the limits it gets the number of a key `OTHER` instead.
        """
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._new(key)
            if len(self._numbers) > 4 * KEYS:
                # keys are unbounded: only keys with an own number stay cached
                self._numbers = {known: at for at, known in enumerate(self.keys)}
        return found

    def _new(self, key: SpanKey) -> int:
        details = self._details.get(key[:2], 0)
        if details >= DETAILS:
            key = key._replace(about=OTHER)
        elif len(self.keys) >= KEYS:
            key = SpanKey("", OTHER, "")
        if key in self._numbers:
            return self._numbers[key]
        self._details[key[:2]] = details + 1
        self.keys.append(key)
        self._numbers[key] = len(self.keys) - 1
        return len(self.keys) - 1
