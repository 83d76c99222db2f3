"""Reads traces by id from a Redis in OSProfiler's layout, many at once.

OSProfiler's own reader scans all keys of the database for each trace, which takes a second per
trace with 100,000 keys. A trace is one list, `osprofiler_opt:<id>`, which is read directly here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import redis

from osbench.common.errors import StoreError
from osbench.common.files.foreign_json import read_json
from osbench.common.protocol.redis_client import connect
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.task.deployments.at_once import call_within
from osbench.edges.traces.model.spans import Trace, is_trace_key, uuid_form
from osbench.edges.traces.sources.pairing import SpanEvent, event_of, pair

#: Prefixes of lists of events, of marks of failed traces (`filter_error_trace`), and of the numbers
#: of events that services had to drop (deploy/osprofiler).
_EVENTS, _ERRORS, _DROPPED = "osprofiler_opt", "osprofiler_error", "osprofiler_dropped"

#: Traces per pipeline, and events per pipeline, whose replies are in memory at once.
_CHUNK = 200
_TOGETHER = 50_000

#: Longest time for the replies of a pipeline, seconds: a server may send a byte now and then.
TOTAL_S = 60.0

#: Limit on events read of one trace, oldest first: a service's thread that has kept a trace
#: writes into it without end.
EVENTS = 20_000


class RedisTraces:
    """The trace store of a deployment: a Redis to which services write OSProfiler's events.

    Methods ignore ids that are not 32 lower-case hexadecimal digits, and raise StoreError if
    Redis fails.
    """

    def __init__(self, conn_str: str, *, timeout_s: float = 5.0, everything: bool = False) -> None:
        """Prepare a client, which connects at the first command.

        `everything` keeps arguments and queries. `timeout_s` bounds connecting and each wait for
        bytes, seconds. Raises StoreError for a malformed URL.
        """
        self._place = mask_url(conn_str)
        self._everything = everything
        #: Malformed events.
        self.skipped = 0
        try:
            self._client = connect(conn_str, timeout_s)
        except StoreError:
            raise StoreError(
                f"trace store: {self._place} is not an address of a Redis; write redis://HOST:PORT "
                "in profiler_conn_str"
            ) from None

    def read(
        self, wanted: Collection[str], lengths: Mapping[str, int] | None = None
    ) -> Iterator[Trace]:
        """Yield the stored parts of these traces, at most the oldest `EVENTS` events of each.

        Malformed events are counted in `skipped`; traces without others are left out. `lengths` has
        the number of events of each valid id; if None, it is queried. Raises StoreError.
        """
        for ids in self._groups(wanted, lengths):
            # the newest event is the head of its list
            for trace_id, raw in zip(ids, self._send("LRANGE", ids, -EVENTS, -1), strict=True):
                events = list(self._events(raw))
                if not events:
                    continue
                # the id of the list counts, not the one in the event
                base = uuid_form(trace_id)
                own = [e if e.trace_id == base else e._replace(trace_id=base) for e in events]
                yield pair(own, everything=self._everything)[trace_id]

    def lengths(self, wanted: Collection[str]) -> list[int]:
        """Return the number of stored events of each valid id, in order; 0 for unknown traces.

        Invalid ids have no entry. Raises StoreError.
        """
        return [int(n) for ids in _chunks(wanted) for n in self._send("LLEN", ids)]

    def dropped(self, wanted: Collection[str]) -> dict[str, int]:
        """Return by service how many events of these traces it had to drop, all traces together.

        Services without a stored count are missing. Raises StoreError.
        """
        found: dict[str, int] = {}
        for ids in _chunks(wanted):
            for counts in self._send("HGETALL", ids, space=_DROPPED):
                for service, number in counts.items():
                    name = service.decode("utf-8", "replace")
                    found[name] = found.get(name, 0) + _number(number)
        return found

    def delete(self, wanted: Collection[str]) -> int:
        """Delete the events of traces, their error marks, and their counts of dropped events.

        Returns the number of traces that had events. Raises StoreError.
        """
        found = 0
        for ids in _chunks(wanted):
            with self._reached():
                # a command for all of them costs a fraction of one for each
                found += int(self._client.unlink(*_keys(ids)))
                self._client.unlink(*_keys(ids, _ERRORS), *_keys(ids, _DROPPED))
        return found

    def expire(self, wanted: Collection[str], seconds: int) -> None:
        """Let the events and error marks of traces expire in `seconds`, if they have no expiry yet.

        Raises StoreError.
        """
        for ids in _chunks(wanted):
            for space in (_EVENTS, _ERRORS):
                left = self._send("TTL", ids, space=space)
                kept_for_ever = [name for name, ttl in zip(ids, left, strict=True) if ttl == -1]
                self._send("EXPIRE", kept_for_ever, seconds, space=space)

    def forget(self, wanted: Collection[str], seconds: int) -> None:
        """Let the events and error marks of traces expire `seconds` from now, unconditionally.

        Raises StoreError.
        """
        for ids in _chunks(wanted):
            for space in (_EVENTS, _ERRORS):
                self._send("EXPIRE", ids, seconds, space=space)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _groups(
        self, wanted: Collection[str], lengths: Mapping[str, int] | None
    ) -> Iterator[list[str]]:
        """Yield groups of valid ids whose events are read together: at most `_TOGETHER` events.

        `lengths`: number of events by id; if None, it is queried. Raises StoreError.
        """
        for ids in _chunks(wanted):
            group: list[str] = []
            events = 0
            known = self._send("LLEN", ids) if lengths is None else [lengths[one] for one in ids]
            for trace_id, length in zip(ids, known, strict=True):
                more = min(int(length), EVENTS)
                if group and events + more > _TOGETHER:
                    yield group
                    group, events = [], 0
                group.append(trace_id)
                events += more
            yield group

    def _events(self, raw: Sequence[bytes]) -> Iterator[SpanEvent]:
        for written in self._decoded(raw):
            try:
                yield event_of(written)
            except ValueError:
                self.skipped += 1

    def _decoded(self, raw: Sequence[bytes]) -> list[Any]:
        try:
            # one call for all of them takes a quarter less
            found: list[Any] = read_json(b"[" + b",".join(raw) + b"]")
            if len(found) == len(raw):
                return found
        except ValueError:
            pass
        return [self._decoded_one(one) for one in raw]

    def _decoded_one(self, raw: bytes) -> Any:
        try:
            return read_json(raw)
        except ValueError:
            return None

    def _send(
        self, command: str, ids: Sequence[str], *arguments: int, space: str = _EVENTS
    ) -> list[Any]:
        with self._reached():
            pipeline = self._client.pipeline(transaction=False)
            for key in _keys(ids, space):
                pipeline.execute_command(  # type: ignore[no-untyped-call]  # redis-py has no hints here
                    command, key, *arguments
                )
            return list(call_within(TOTAL_S, pipeline.execute))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            raise StoreError(
                f"trace store at {self._place}: {error}; check profiler_conn_str and that server"
            ) from None


def _keys(ids: Sequence[str], space: str = _EVENTS) -> list[str]:
    return [f"{space}:{uuid_form(trace_id)}" for trace_id in ids]


def _number(raw: bytes) -> int:
    return int(raw) if raw.isdigit() else 0


def _chunks(wanted: Collection[str]) -> Iterator[list[str]]:
    # a malformed id could name any key
    ids = iter([trace_id for trace_id in wanted if is_trace_key(trace_id)])
    while chunk := list(islice(ids, _CHUNK)):
        yield chunk
