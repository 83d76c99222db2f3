"""Requests spans from a service, and looks for them in the trace store."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import redis
from osprofiler import profiler, web

from osbench.common.errors import StoreError
from osbench.common.files.foreign_json import read_json
from osbench.common.protocol import redis_client

#: Longest wait for spans after the last response, and polling interval, seconds.
SPANS_S = 3.0
LOOK_S = 0.02

#: Sentence on a service that writes none, with what to do.
NO_SPANS = (
    "no spans: look at enabled, hmac_keys (the record's profiler_hmac_key must be among them) and"
    " connection_string in [profiler] of its configuration, and whether OSProfiler is in its"
    " pipeline"
)


def signed_headers(key: str) -> tuple[str, dict[str, str]]:
    """Return a new trace id, and HTTP headers by which OSProfiler writes spans of it.

    The headers are signed with `key`. Resets the profiler of this thread.
    """
    profiler.clean()
    try:
        base_id = str(profiler.init(key).get_base_id())
        return base_id, dict(web.get_trace_id_headers())
    finally:
        profiler.clean()


def connect_store(store: str | None, timeout_s: float) -> Any:
    """Connect to a trace store in Redis and return the client.

    `store`: its URL. None without one, if it is not of Redis, or no connection within `timeout_s`.
    """
    if not store or not store.startswith(("redis://", "rediss://")):
        return None
    try:
        client = redis_client.connect(store, timeout_s)
        client.ping()
    except (StoreError, redis.RedisError, OSError):
        return None
    return client


def first_spans(
    store: Any,
    traces: Mapping[str, str],
    answered_at: Mapping[str, float],
    is_own: Callable[[str], bool] = lambda project: True,
) -> dict[str, float]:
    """Wait for the first span of each trace; return the seconds from the response to it, by key.

    `traces`: trace ids by key; `answered_at`: monotonic seconds of the responses. Polls the store
    for at most `SPANS_S` seconds; keys without spans are left out. Then deletes the spans. `is_own`
    returns whether spans of a project, in lower case, count. Errors of Redis end all this silently.
    """
    seen: dict[str, float] = {}
    end = time.monotonic() + SPANS_S
    with contextlib.suppress(redis.RedisError, OSError):
        while True:
            # what was written before the time was up is found by a last look
            last = time.monotonic() >= end
            for key, base_id in traces.items():
                if key not in seen and _has_span(store, base_id, is_own):
                    seen[key] = max(0.0, time.monotonic() - answered_at[key])
            if last or len(seen) == len(traces):
                break
            time.sleep(LOOK_S)
        store.delete(*map(_trace_key, traces.values()))
    return seen


def _trace_key(base_id: str) -> str:
    return f"osprofiler_opt:{base_id}"


def _has_span(store: Any, base_id: str, is_own: Callable[[str], bool]) -> bool:
    for event in store.lrange(_trace_key(base_id), 0, -1):
        with contextlib.suppress(ValueError):
            if is_own(str(read_json(event).get("project", "")).lower()):
                return True
    return False
