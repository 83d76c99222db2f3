"""The end of a run against a real Redis: what is read, awaited, kept and deleted."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

import pytest

from helpers.result_rows import row_of
from helpers.synthetic_traces import (
    Fault,
    Work,
    events_of,
    find,
    iteration,
    slow_query,
    spans_of,
    traces,
)
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.collector import Collection, CollectionSettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.collection.trace_set import of_run
from osbench.edges.traces.model.spans import Trace, uuid_form
from osbench.edges.traces.sources.otlp import to_otlp

pytestmark = pytest.mark.functional

KEEP = Retention(slowest=20, failed=5, share=0.1, limit=1 << 30)


def push(client, trace, events=None):
    written = [json.dumps(event) for event in (events or events_of(trace))]
    client.lpush(f"osprofiler_opt:{uuid_form(trace.trace_id)}", *written)


def run_of(tmp_path, found, failed=(), untraced=0, more=()):
    """A run directory whose iterations, from 1, have these traces."""
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    rows = []
    for number, trace in enumerate(found, 1):
        length = max(span.duration_ns for span in trace.spans)
        outcome = Outcome.FAILED if number in failed else Outcome.OK
        ids = (bytes.fromhex(trace.trace_id), None, b"")
        rows.append(row_of(number, outcome, 0, number, number + length, 0, 0, (), ids))
    for number in range(untraced):
        rows.append(row_of(10**6 + number, Outcome.OK, 0, 0, 8_000_000 + number, 0, 0, (), None))
    columns = encode_rows(rows, (), 0)
    directory.keep([block(0, columns), *more])
    directory.close()
    return directory


def block(workload, columns):
    return {"workload": workload, "incarnation": "w", "columns": columns, "failures": []}


def collect(directory, url, names=("Shop.buy",), **options):
    settings = {"retention": KEEP, "late_s": 0.0, "expiry_s": 600, **options}
    warmup = settings.pop("warmup_ns", {})
    collection = Collection(directory, names, CollectionSettings(**settings), warmup_ns=warmup)
    return collection.collect(url)


def test_the_slow_the_failed_and_a_share_are_kept_and_the_rest_is_deleted(redis, tmp_path):
    found = list(traces(1000, Fault(share=0.05, harm=slow_query)))
    client = redis.client()
    for trace in found:
        push(client, trace)
    failed = range(10, 30)

    with_cost = collect(run_of(tmp_path, found, failed, untraced=500), redis.url)

    directory = RunDirectory.find(str(tmp_path), "last")
    kept = {trace.trace_id: trace for trace in Archive(directory.path).traces()}
    ordered = sorted(
        (trace for number, trace in enumerate(found, 1) if number not in failed),
        key=lambda trace: -max(span.duration_ns for span in trace.spans),
    )
    assert {trace.trace_id for trace in ordered[:20]} <= kept.keys()
    assert sum(found[number - 1].trace_id in kept for number in failed) in range(5, 12)
    assert 80 < len(kept) < 170
    assert with_cost.kept == (len(kept),)
    left = {key.decode().removeprefix("osprofiler_opt:") for key in client.scan_iter()}
    assert left == {uuid_form(trace_id) for trace_id in kept}
    assert all(0 < client.ttl(f"osprofiler_opt:{name}") <= 600 for name in left)
    # all of them are in the table, whether kept or not
    trace_set = of_run(directory)
    assert len(trace_set.features) == trace_set.traced == trace_set.coverage.traces == 1000
    assert sorted(trace_set.features.iteration.tolist()) == list(range(1, 1001))
    assert "SELECT prices" in with_cost.sentences[0]
    (cost,) = with_cost.costs
    assert (cost.traced, cost.untraced) == (980, 500)
    assert cost.p50.low_s < cost.p50.added_s < cost.p50.high_s
    assert with_cost.notes == ()


def test_events_that_come_late_are_awaited(redis, tmp_path):
    found = list(traces(50))
    for trace in found[:-1]:
        push(redis.client(), trace)
    early, late = events_of(found[-1])[:3], events_of(found[-1])[3:]
    push(redis.client(), found[-1], early)
    more = Work(name="notify", start=9000, length=5, service="bus", host="c")
    added = events_of(spans_of(more, number=1))
    for event in added:
        event["base_id"] = uuid_form(found[0].trace_id)
        event["parent_id"] = events_of(found[0])[0]["trace_id"]
        event["trace_id"] = uuid_form("9" * 32)

    def later():
        with redis.client() as client:
            while "cmdstat_lrange" not in client.info("commandstats"):
                time.sleep(0.05)
        # longer than a store is watched in which nothing is missing
        time.sleep(1.0)
        push(redis.client(), found[-1], late)
        push(redis.client(), found[0], added)

    thread = threading.Thread(target=later)
    thread.start()
    collect(run_of(tmp_path, found), redis.url, late_s=30.0)
    thread.join()

    trace_set = of_run(RunDirectory.find(str(tmp_path), "last"))
    assert trace_set.coverage.traces == 50
    assert trace_set.coverage.incomplete == 0
    assert trace_set.coverage.services["shop/api"].count == 200
    assert trace_set.coverage.services["bus"].count == 1


def test_what_stays_incomplete_is_waited_for_no_longer_than_said(redis, tmp_path):
    found = list(traces(30))
    for trace in found:
        events = events_of(trace)
        push(redis.client(), trace, events[:-1] if trace is found[3] else events)
    settings = {"retention": Retention(slowest=0, failed=0, share=0.0, limit=1 << 30)}

    collect(run_of(tmp_path, found), redis.url, late_s=0.6, **settings)

    trace_set = of_run(RunDirectory.find(str(tmp_path), "last"))
    assert trace_set.coverage.incomplete == trace_set.coverage.lost_stops == 1
    # what may still arrive must not create a list that is never deleted
    (key,) = redis.client().scan_iter()
    assert key.decode().endswith(uuid_form(found[3].trace_id))
    assert 0 < redis.client().ttl(key) <= 60


def test_spans_in_files_join_their_traces(redis, tmp_path):
    found = list(traces(40))
    elsewhere = []
    for trace in found:
        push(redis.client(), trace, events_of(without(trace, "reserve")))
        elsewhere.append(without(trace, "osbench.iteration", "shop.buy", "wsgi", "db", "rpc"))
    spans = tmp_path / "spans.json"
    spans.write_text(json.dumps(to_otlp([*elsewhere, *traces(3, seed=77)])))
    files = (spans, tmp_path / "nothing")

    collected = collect(run_of(tmp_path, found), redis.url, files=files)

    trace_set = of_run(RunDirectory.find(str(tmp_path), "last"))
    assert trace_set.coverage.traces == 40
    assert trace_set.coverage.services["stock/engine"].count == 40
    assert trace_set.coverage.services["stock/engine"].orphan == 0
    assert "cannot read" in collected.notes[0]


def test_traces_of_threads_that_keep_an_old_one_are_counted(redis, tmp_path):
    chance = random.Random(1)
    works = [iteration(chance) for _ in range(60)]
    calls = [find(work, "rpc") for work in works]
    for number, call in enumerate(calls):
        engine = call.inner.pop()
        engine.start += (number - number % 2) * 1000
        calls[number % 2].inner.append(engine)
    found = [spans_of(work, number=number) for number, work in enumerate(works, 1)]
    for trace in found:
        push(redis.client(), trace)

    collected = collect(run_of(tmp_path, found), redis.url)

    coverage = of_run(RunDirectory.find(str(tmp_path), "last")).coverage
    assert (coverage.services["stock/engine"].count, coverage.services["stock/engine"].stale) == (
        60,
        58,
    )
    assert coverage.services["shop/api"].stale == 0
    (note,) = collected.notes
    assert note == (
        "traces: stock/engine: 58 spans left out (97 %), written into traces that its threads had"
        " kept from earlier requests"
    )


def test_a_service_on_the_way_that_records_nothing_is_reported(redis, tmp_path):
    found = list(traces(40))
    for trace in found:
        push(redis.client(), trace, events_of(without(trace, "rpc")))

    collected = collect(run_of(tmp_path, found), redis.url)

    assert collected.notes == (
        "traces: stock/engine: 40 spans left out (100 %), the spans around them are not recorded",
    )


def test_what_services_dropped_is_reported_and_deleted(redis, tmp_path):
    found = list(traces(4))
    client = redis.client()
    for trace in found:
        push(client, trace)
    for trace, service, number in ((0, "nova/api", 2), (1, "nova/api", 1), (1, "glance/api", 1)):
        key = f"osprofiler_dropped:{uuid_form(found[trace].trace_id)}"
        client.hincrby(key, service, number)
        client.hset(key, "of someone else", "many")

    collected = collect(
        run_of(tmp_path, found),
        redis.url,
        retention=Retention(slowest=0, failed=0, share=0.0, limit=1 << 30),
    )

    assert collected.notes == (
        "traces: glance/api dropped 1 event of its spans",
        "traces: nova/api dropped 3 events of its spans",
    )
    assert client.dbsize() == 0


def test_workloads_are_kept_apart_and_their_warm_up_is_left_out(redis, tmp_path):
    found = list(traces(40))
    for trace in found:
        push(redis.client(), trace)
    rows = [
        row_of(
            n, Outcome.OK, 0, n * 10, n * 10 + 5, 0, 0, (), (bytes.fromhex(one.trace_id), None, b"")
        )
        for n, one in enumerate(found[20:], 1)
    ]
    directory = run_of(tmp_path, found[:20], more=[block(1, encode_rows(rows, (), 0))])

    collect(directory, redis.url, ("Shop.buy", "Shop.buy"), warmup_ns={1: 105})

    features = of_run(directory).features
    assert features.groups == ("Shop.buy [0]", "Shop.buy [1]")
    assert [int((features.group == number).sum()) for number in (0, 1)] == [20, 10]
    assert features.iteration[features.group == 1].min() == 11


def test_a_store_that_fails_costs_traces_and_nothing_else(redis, tmp_path):
    found = list(traces(5))
    redis.kill()

    collected = collect(run_of(tmp_path, found, untraced=5), redis.url)

    assert "could not all be collected" in collected.notes[0]
    assert collected.costs[0].traced == 5


def test_of_very_many_a_share_is_read_in_addition_to_what_is_kept(redis, tmp_path):
    found = list(traces(600, Fault(share=0.02, harm=slow_query)))
    for trace in found:
        push(redis.client(), trace)
    keep = Retention(slowest=10, failed=5, share=0.0, limit=1 << 30)

    collected = collect(run_of(tmp_path, found), redis.url, retention=keep, most=200)

    trace_set = of_run(RunDirectory.find(str(tmp_path), "last"))
    compared = int((trace_set.features.group == 0).sum())
    # the slowest, and some next to p50 and p95
    (kept,) = collected.kept
    assert 10 + 2 * 3 <= kept <= 10 + 3 * 6
    assert trace_set.traced == 600
    assert 150 < compared < 250
    assert compared < len(trace_set.features) <= compared + kept
    assert redis.client().dbsize() == kept


def test_no_more_is_kept_than_there_is_room_for(redis, tmp_path):
    found = list(traces(300))
    for trace in found:
        push(redis.client(), trace)
    keep = Retention(slowest=300, failed=0, share=0.0, limit=20_000)

    collected = collect(run_of(tmp_path, found), redis.url, retention=keep)

    path = Path(tmp_path) / "runs" / "20260401-a" / "traces" / "kept"
    assert 20_000 <= path.stat().st_size < 22_000
    assert 0 < collected.kept[0] < 100
    assert len(of_run(RunDirectory.find(str(tmp_path), "last")).features) == 300


def without(trace, *names):
    spans = tuple(span for span in trace.spans if span.name not in names)
    return Trace(trace_id=trace.trace_id, spans=spans)
