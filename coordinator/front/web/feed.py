"""Server-sent events of one page: one JSON document, built once for all clients.

The feed waits for no client: a slow one gets the newest document next, never a queue. An event
has the change from the document before, as charts grow at their ends. Forms of a change:
  {"=": value}             a new value instead of the old one
  {"+": [kept, values]}    a list: the first `kept` values stay, these follow
  {"~": {key: change}}     changes of some members of an object, or of a list of equal length
`live.js` applies them. HTML goes as a list of its lines: most of them stay as they are.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

LOG = logging.getLogger(__name__)

#: At least so long between two documents; without news a comment keeps the connection open.
PERIOD_S = 1.0
QUIET_S = 15.0
#: The part of a core that building documents may take: what takes longer is built less often.
SHARE = 0.1
#: How long documents are built without a client: a reload comes back at once.
GRACE_S = 3.0

#: The key of a document that says that it is the last one.
OVER = "over"

Change = dict[str, Any]
#: Characters of overhead, about, to mark a changed member of a list.
_OVERHEAD = 12


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A version of the document that a feed sends, with its number and the event of its change."""

    number: int
    document: dict[str, Any]
    #: Begins the ids of events.
    epoch: str
    #: The event for clients that have the previous document.
    tail: bytes

    @cached_property
    def whole(self) -> bytes:
        """Return the event with the entire document, for clients that lack the version before."""
        return event(self.epoch, self.number, {"=": self.document})

    @property
    def last(self) -> bool:
        """Return whether this is the last document: its key "over" is true."""
        return bool(self.document.get(OVER))


def event(epoch: str, number: int, how: dict[str, Any]) -> bytes:
    """Return a server-sent event that brings a client to version `number` of the document.

    `how`: the change, in a form of the module. The id of the event is EPOCH-NUMBER.
    """
    data = json.dumps(how, separators=(",", ":"), allow_nan=False)
    return f"id: {epoch}-{number}\ndata: {data}\n\n".encode()


def pause_s(cost_s: float) -> float:
    """Return the seconds to pause after building a document, so that it takes `SHARE` of a core.

    `cost_s`: CPU seconds of the last building. At least `PERIOD_S`.
    """
    return max(PERIOD_S, cost_s / SHARE)


class Feed:
    """Builds a document at most once a second while clients are connected; streams it to all.

    All methods belong to one event loop.
    """

    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        """`build` returns the document as a dict for JSON; it is called in a separate thread."""
        self._build = build
        self._epoch = secrets.token_hex(4)
        self._newest: Frame | None = None
        self._watchers = 0
        self._work: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._closing = asyncio.Event()
        self._closed = False
        self._failed = False

    @property
    def over(self) -> bool:
        """Return whether the last document has been built; no other follows."""
        return self._newest is not None and self._newest.last

    @property
    def at_work(self) -> bool:
        """Return whether the task that builds documents is running.

        It ends `GRACE_S` seconds after the last client has gone, and starts with the next client.
        """
        return self._work is not None and not self._work.done()

    @property
    def watchers(self) -> int:
        """Return the number of open streams, which is the number of connected clients."""
        return self._watchers

    async def stream(self, last_id: str = "") -> AsyncIterator[bytes]:
        """Yield server-sent events, as bytes, for one client until the last document or `close`.

        `last_id`: id of the last event that the client got before; "" if none. The client gets the
        change if it has the version before, else the entire document. After `QUIET_S` seconds
        without an event a comment is sent.
        """
        self._watchers += 1
        seen = self._seen(last_id)
        try:
            yield b"retry: 2000\n\n"
            while True:
                if not self.at_work and not self._closing.is_set():
                    self._work = asyncio.create_task(self._run())
                frame, news = self._newest, self._news
                if frame is not None and frame.number != seen:
                    yield frame.tail if seen == frame.number - 1 else frame.whole
                    seen = frame.number
                    if frame.last:
                        return
                    continue
                if self._closed:
                    return
                try:
                    await asyncio.wait_for(news.wait(), QUIET_S)
                except TimeoutError:
                    yield b": nothing new\n\n"
        finally:
            self._watchers -= 1

    async def close(self) -> None:
        """Build a last document, then end the streams, which send it first.

        Returns when it has been built; the streams may still be sending.
        """
        self._closing.set()
        if self._work is not None:
            await self._work
        self._closed = True
        self._tell()

    def _seen(self, last_id: str) -> int:
        epoch, _, number = last_id.partition("-")
        return int(number) if epoch == self._epoch and number.isdecimal() else -1

    async def _run(self) -> None:
        alone_since: float | None = None
        while True:
            closing = self._closing.is_set()
            wait_s = await self._next()
            if closing or self.over:
                return
            if self._watchers:
                alone_since = None
            else:
                alone_since = alone_since or time.monotonic()
                if time.monotonic() - alone_since > GRACE_S:
                    return
            try:
                await asyncio.wait_for(self._closing.wait(), wait_s)
            except TimeoutError:
                continue

    async def _next(self) -> float:
        """Build a document in a thread; if it has changed, make it the newest and wake the streams.

        Returns the pause until the next, seconds. If `build` raises, the newest document stays, the
        pause is 5 * `PERIOD_S`, and the first such exception is logged.
        """
        try:
            frame, cost_s = await asyncio.to_thread(self._built)
        except Exception:
            # a page that cannot be drawn must not end the others, and no run
            if not self._failed:
                LOG.exception("the live view cannot be drawn")
            self._failed = True
            return PERIOD_S * 5
        if frame is not None:
            self._newest = frame
            self._tell()
        return pause_s(cost_s)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _built(self) -> tuple[Frame | None, float]:
        began = time.thread_time()
        document = self._build()
        newest = self._newest
        how = change(newest.document if newest is not None else None, document)
        if how is None:
            return None, time.thread_time() - began
        number = newest.number + 1 if newest is not None else 0
        tail = event(self._epoch, number, how)
        frame = Frame(number=number, document=document, epoch=self._epoch, tail=tail)
        return frame, time.thread_time() - began


def change(before: Any, after: Any) -> Change | None:
    """Return the change from one JSON value to the next, in a form of the module; None if equal."""
    if before == after:
        return None
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return {"~": _members((key, before[key], after[key]) for key in after)}
    if isinstance(before, list) and isinstance(after, list) and before:
        return _of_lists(before, after)
    return {"=": after}


def apply_change(before: Any, how: Change | None) -> Any:
    """Return a JSON value with a change applied, as `live.js` does it; `before` is not modified.

    `how`: a result of `change`; None changes nothing. For tests and clients in Python.
    """
    if how is None:
        return before
    ((kind, what),) = how.items()
    if kind == "=":
        return what
    if kind == "+":
        return [*before[: what[0]], *what[1]]
    if isinstance(before, dict):
        return {key: apply_change(value, what.get(key)) for key, value in before.items()}
    return [apply_change(value, what.get(str(at))) for at, value in enumerate(before)]


def _of_lists(before: list[Any], after: list[Any]) -> Change:
    kept = next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new),
        min(len(before), len(after)),
    )
    tail: Change = {"+": [kept, after[kept:]]}
    if len(before) != len(after):
        return tail
    differ = [at for at in range(kept, len(after)) if before[at] != after[at]]
    if not isinstance(after[kept], dict | list | str):
        return tail
    # numbers are sent again up to the end, texts only where that is longer than to point at some
    if isinstance(after[kept], str):
        again = sum(len(str(one)) for one in after[kept:])
        if again <= sum(len(str(after[at])) + _OVERHEAD for at in differ):
            return tail
    return {"~": _members((str(at), before[at], after[at]) for at in differ)}


def _members(triples: Any) -> dict[str, Change]:
    found = ((key, change(old, new)) for key, old, new in triples)
    return {key: how for key, how in found if how is not None}
