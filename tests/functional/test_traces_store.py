"""Traces in a real Redis: read in bulk, with an expiry, and deleted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.synthetic_traces import events_of, traces
from osbench.common.errors import StoreError
from osbench.edges.traces.model.spans import uuid_form
from osbench.edges.traces.sources import redis_store
from osbench.edges.traces.sources.files import open_file
from osbench.edges.traces.sources.redis_store import RedisTraces

pytestmark = pytest.mark.functional


def store(client, trace, events=None):
    """Push events as a service does: the newest becomes the head, and nothing expires."""
    written = [json.dumps(event) for event in events or events_of(trace)]
    client.lpush(f"osprofiler_opt:{uuid_form(trace.trace_id)}", *written)


def test_the_traces_of_the_ids_asked_for_and_no_others(redis):
    written = list(traces(500))
    for trace in written:
        store(redis.client(), trace)
    wanted = [trace.trace_id for trace in written[:450]]

    source = RedisTraces(redis.url)
    found = {trace.trace_id: trace for trace in source.read([*wanted, "0" * 32])}

    assert list(found) == wanted
    assert [span[:7] for span in found[wanted[7]].spans] == [span[:7] for span in written[7].spans]
    assert source.lengths([wanted[0], "0" * 32]) == [2 * len(written[0].spans), 0]
    assert source.skipped == 0
    # many at once, and without a look at other keys
    used = redis.client().info("commandstats")
    assert used["cmdstat_lrange"]["calls"] == 451
    assert not used.keys() & {"cmdstat_scan", "cmdstat_keys", "cmdstat_lindex"}


def test_of_a_trace_without_end_the_oldest_events_are_read(redis, monkeypatch):
    monkeypatch.setattr(redis_store, "EVENTS", 20)
    one, *later = traces(9)
    for trace in (one, *later):
        events = events_of(trace)
        store(redis.client(), one, events)

    (found,) = RedisTraces(redis.url).read([one.trace_id])

    known = {span.span_id for span in found.spans}
    assert {span.span_id for span in one.spans} <= known
    assert not {span.span_id for span in later[-1].spans} & known


def test_what_is_no_event_is_skipped_and_counted(redis):
    (trace,) = traces(1)
    store(redis.client(), trace)
    key = f"osprofiler_opt:{uuid_form(trace.trace_id)}"
    redis.client().lpush(key, "not json", "[1]", '{"name": "x"}', b"\xff")

    source = RedisTraces(redis.url)
    (found,) = source.read([trace.trace_id])

    assert len(found.spans) == len(trace.spans)
    assert source.skipped == 4


def test_no_id_reaches_another_key(redis):
    redis.client().set("osprofiler_opt:*", "x")
    redis.client().set("other", "x")

    source = RedisTraces(redis.url)

    assert list(source.read(["*", "../other", ""])) == []
    assert source.delete(["*"]) == 0
    assert redis.client().dbsize() == 2


def test_traces_that_services_wrote_expire_and_what_expires_is_left_alone(redis):
    one, other, gone = traces(3)
    for trace in (one, other, gone):
        store(redis.client(), trace)
    redis.client().expire(f"osprofiler_opt:{uuid_form(other.trace_id)}", 50)

    source = RedisTraces(redis.url)
    source.expire([one.trace_id, other.trace_id], 600)
    assert source.delete([gone.trace_id]) == 1

    assert 590 <= redis.client().ttl(f"osprofiler_opt:{uuid_form(one.trace_id)}") <= 600
    assert redis.client().ttl(f"osprofiler_opt:{uuid_form(other.trace_id)}") <= 50
    assert list(source.read([gone.trace_id])) == []


def test_what_a_service_notes_of_failed_traces_goes_with_them(redis):
    one, other, gone = traces(3)
    for trace in (one, other, gone):
        store(redis.client(), trace)
        redis.client().set(f"osprofiler_error:{uuid_form(trace.trace_id)}", "{}")

    source = RedisTraces(redis.url)
    source.expire([one.trace_id], 600)
    source.forget([other.trace_id], 60)
    assert source.delete([gone.trace_id]) == 1

    left = {key.decode(): redis.client().ttl(key) for key in redis.client().scan_iter()}
    assert len(left) == 4
    for trace, seconds in ((one, 600), (other, 60)):
        for space in ("osprofiler_opt", "osprofiler_error"):
            assert 0 < left[f"{space}:{uuid_form(trace.trace_id)}"] <= seconds


def test_what_osprofiler_prints_of_a_trace_is_the_trace(redis, tmp_path):
    (trace,) = traces(1)
    store(redis.client(), trace)
    printed = subprocess.run(
        [
            str(Path(sys.executable).with_name("osprofiler")),
            *("trace", "show", "--json", uuid_form(trace.trace_id)),
        ],
        env={**os.environ, "OSPROFILER_CONNECTION_STRING": redis.url},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    path = tmp_path / "trace.json"
    path.write_text(printed)

    source = open_file(path)
    (found,) = source.all()

    # in microseconds, where the report itself has whole milliseconds
    assert [span[:9] for span in found.spans] == [
        span._replace(kind="")[:9] for span in trace.spans
    ]
    assert source.skipped == 0
    assert "hunter2" in printed
    assert "hunter2" not in str(found)


def test_a_store_that_is_away_is_reported_without_its_password(redis):
    (trace,) = traces(1)
    redis.kill()

    source = RedisTraces(redis.url)
    with pytest.raises(StoreError, match="trace store") as raised:
        list(source.read([trace.trace_id]))

    assert "functional" not in str(raised.value)


def test_a_wrong_address_is_reported_without_its_password():
    with pytest.raises(StoreError, match="is not an address of a Redis") as raised:
        RedisTraces("mongodb://user:hunter2@host/db")

    assert "hunter2" not in str(raised.value)
