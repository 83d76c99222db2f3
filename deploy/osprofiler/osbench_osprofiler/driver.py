"""OSProfiler's driver for Redis with the writing moved out of requests.

Events are written as OSProfiler's own driver writes them, byte for byte, and read by its tools. A
request only makes an event's text and appends it to a queue; a thread sends the waiting events.
Nothing is raised into the service: events that cannot be written are dropped and counted.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import time
from collections import deque
from typing import Any, NamedTuple

from oslo_serialization import jsonutils
from osprofiler.drivers import redis_driver

from osbench_osprofiler.span_store import SpanStore
from osbench_osprofiler.store_queue import Parcel, StoreQueue

LOG = logging.getLogger(__name__)

#: Characters of waiting events in one process, at most.
QUEUE_LIMIT = 16 << 20
_TIMEOUT_S = 2.0
#: Longest wait for the store when a process ends, seconds.
_CLOSE_S = 2.0
#: Traces whose dropped events are counted one by one, at most; and how many of these counts are
#: sent to the store at once.
_TRACES, _TOLD = 10_000, 500
#: Time until the next counts are sent to the store, and how long it keeps them, seconds.
_AGAIN_S, _KEPT_S = 1.0, 86_400
#: Error codes with which the store would refuse the numbers the next time, too.
_FOR_EVER = ("NOPERM", "WRONGTYPE", "ERR")

#: As OSProfiler's driver encodes; the text is made within the request, because services change what
#: they have handed over.
_encode = json.JSONEncoder(default=jsonutils.to_primitive).encode


class Event(NamedTuple):
    """An event on its way to the store."""

    trace: str
    text: str
    #: What OSProfiler's `filter_error_trace` adds for an event of an error, else "".
    error: str


class BufferedRedis(redis_driver.Redis):
    """`osbench+redis://[:password@]host[:port][/db]`."""

    def __init__(self, connection_str: str, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError for a malformed connection string."""
        plain = connection_str.removeprefix("osbench+")
        # before OSProfiler's driver, whose message may have part of the password
        SpanStore(plain, _TIMEOUT_S)
        super().__init__(plain, *args, **kwargs)
        self._writers: dict[int, EventWriter] = {}

    @classmethod
    def get_name(cls) -> str:
        """Return the scheme of the connection string."""
        return "osbench+redis"

    def notify(self, info: dict[str, Any], **kwargs: Any) -> None:
        """Queue an event. Never waits for the store, and never raises."""
        trace = ""
        try:
            data = {**info, "project": self.project, "service": self.service}
            base_id = str(info["base_id"])
            # such as no key of the store can be
            base_id.encode()
            trace, error = base_id, ""
            if self.filter_error_trace and data.get("info", {}).get("etype") is not None:
                error = _encode({"base_id": trace, "timestamp": data["timestamp"]})
            event = Event(trace, _encode(data), error)
        except Exception:  # noqa: BLE001 - whatever a service traces, its request goes on
            self._writer().drop(trace)
        else:
            self._writer().put(event)

    def _writer(self) -> EventWriter:
        """Return the writer of this process: threads and connections do not outlive a fork."""
        pid = os.getpid()
        writer = self._writers.get(pid)
        if writer is None:
            name = f"{self.project or ''}/{self.service or ''}"
            # no lock, which a process forked at that moment would find held for ever
            writer = self._writers.setdefault(pid, EventWriter(self.connection_str, name))
            for other in list(self._writers):
                if other != pid:
                    self._writers.pop(other, None)
            writer.start()
        return writer


class BufferedRedisTls(BufferedRedis):
    """`osbench+rediss://`, with TLS."""

    @classmethod
    def get_name(cls) -> str:
        """Return the scheme of the connection string."""
        return "osbench+rediss"


class BufferedRedisSocket(BufferedRedis):
    """`osbench+unix://[:password@]/path[?db=n]`."""

    @classmethod
    def get_name(cls) -> str:
        """Return the scheme of the connection string."""
        return "osbench+unix"


class EventWriter:
    """Writes the events of one process, and the numbers of dropped events."""

    def __init__(self, conn_str: str, name: str) -> None:
        """`name` is the name of the service, under which dropped events are counted."""
        self._name = name
        self._pid = os.getpid()
        self._queue = StoreQueue(
            SpanStore(conn_str, _TIMEOUT_S), self._pack, QUEUE_LIMIT, self._lose
        )
        #: Traces of dropped events, from all threads; and their numbers, for the writing thread.
        self._drops: deque[str] = deque()
        self._dropped: dict[str, int] = {}
        self._tell_at = 0.0

    def start(self) -> None:
        """Start the thread, at the first call."""
        try:
            self._queue.start()
        except RuntimeError as error:
            LOG.warning("Spans of this process are dropped: %s", error)
        else:
            atexit.register(self.close)

    def put(self, event: Event) -> None:
        """Take an event, or drop it if too much is waiting."""
        if not self._queue.put(event, 1, len(event.text)):
            self._note(event.trace)

    def drop(self, trace: str) -> None:
        """Count an event that has no text."""
        self._queue.refuse(1)
        self._note(trace)

    def close(self) -> None:
        """Write waiting events, for a bounded time; nothing in a process forked from this one."""
        if os.getpid() == self._pid:
            self._queue.close(_CLOSE_S)

    def stats(self) -> dict[str, Any]:
        """Return events `written`, `dropped` and `waiting`, and the store's last `error` or ""."""
        return self._queue.stats()

    def _note(self, trace: str) -> None:
        if trace and len(self._drops) < _TRACES:
            self._drops.append(trace)

    def _lose(self, parcel: Parcel, refusal: str) -> None:
        if parcel.dropped:
            self._tell_at = time.monotonic() + _AGAIN_S
            if refusal in _FOR_EVER:
                return
        self._add(parcel.trace, parcel.spans + parcel.dropped)

    def _add(self, trace: str, number: int) -> None:
        if trace in self._dropped or len(self._dropped) < _TRACES:
            self._dropped[trace] = self._dropped.get(trace, 0) + number

    def _pack(self, events: list[Event]) -> list[Parcel]:
        traces: dict[str, list[str]] = {}
        errors: dict[str, str] = {}
        for trace, text, error in events:
            traces.setdefault(trace, []).append(text)
            if error:
                errors[trace] = error
        parcels = []
        for trace, texts in traces.items():
            commands = _command("LPUSH", f"osprofiler_opt:{trace}", *texts)
            if trace in errors:
                commands += _command("SET", f"osprofiler_error:{trace}", errors[trace])
            parcels.append(Parcel(commands, 1 + (trace in errors), len(texts), trace))
        return parcels + self._reports()

    def _reports(self) -> list[Parcel]:
        while self._drops:
            self._add(self._drops.popleft(), 1)
        if not self._dropped or time.monotonic() < self._tell_at:
            return []
        parcels = []
        for trace in list(self._dropped)[:_TOLD]:
            number = self._dropped.pop(trace)
            key = f"osprofiler_dropped:{trace}"
            commands = _command("HINCRBY", key, self._name, str(number))
            commands += _command("EXPIRE", key, str(_KEPT_S))
            parcels.append(Parcel(commands, 2, 0, trace, number))
        return parcels


def _command(*words: str) -> str:
    return f"*{len(words)}\r\n" + "".join([f"${_size(word)}\r\n{word}\r\n" for word in words])


def _size(word: str) -> int:
    return len(word) if word.isascii() else len(word.encode())
