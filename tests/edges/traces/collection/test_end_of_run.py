"""The end of a run where the store fails in the middle, or files grow meanwhile."""

import json

import pytest

from helpers.result_rows import row_of
from helpers.synthetic_traces import traces
from osbench.common.errors import StoreError
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection import collector
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.collector import Collection, CollectionSettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.collection.trace_set import of_run
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.sources.otlp import to_otlp


class Store:
    """A trace store that may fail once it has given some traces."""

    skipped = 0

    def __init__(self, stored, fails_after=None, meanwhile=lambda: None):
        self._stored = {trace.trace_id: trace for trace in stored}
        self._left = fails_after
        self._meanwhile = meanwhile
        self.done = {}

    def lengths(self, wanted):
        return [2 * len(self._stored[trace].spans) for trace in wanted]

    def read(self, wanted, lengths):
        for trace_id in wanted:
            if self._left is not None:
                if not self._left:
                    raise StoreError("gone")
                self._left -= 1
            yield self._stored[trace_id]
        self._meanwhile()

    def dropped(self, wanted):
        return {}

    def expire(self, wanted, seconds):
        self.done["expire"] = set(wanted)

    def forget(self, wanted, seconds):
        self.done["forget"] = set(wanted)

    def delete(self, wanted):
        self.done["delete"] = set(wanted)

    def close(self):
        self.done["close"] = True


@pytest.fixture
def collect(monkeypatch, tmp_path):
    def collect_from(store, found, *files, **more):
        directory = RunDirectory.create(str(tmp_path), "20260401-a")
        # one trace is kept: the last one, of an iteration that failed
        outcomes = [Outcome.OK] * (len(found) - 1) + [Outcome.FAILED]
        rows = [
            row_of(
                number,
                outcomes[number - 1],
                0,
                number,
                number + 10**6 * number,
                0,
                0,
                (),
                (ids, None, b""),
            )
            for number, ids in enumerate((bytes.fromhex(one.trace_id) for one in found), 1)
        ]
        columns = encode_rows(rows, (), 0)
        directory.keep([{"workload": 0, "incarnation": "w", "columns": columns, "failures": []}])
        directory.close()
        monkeypatch.setattr(collector, "RedisTraces", lambda *_, **__: store)
        keep = Retention(slowest=0, failed=1, share=0.0, limit=1 << 30)
        settings = CollectionSettings(retention=keep, late_s=0.0, expiry_s=600, files=files, **more)
        return directory, Collection(directory, ["a"], settings, warmup_ns={}).collect("redis://h")

    return collect_from


def test_a_store_that_fails_in_the_middle_is_tidied_all_the_same(collect):
    found = list(traces(10))
    ids = [trace.trace_id for trace in found]
    store = Store(found, fails_after=6)

    _, collected = collect(store, found)

    assert collected.notes == ("traces could not all be collected: gone",)
    assert store.done["delete"] == set(ids[:6])
    # those it did not give may be looked at for a while
    assert store.done["expire"] == set(ids[6:])
    assert store.done["close"]


def test_a_run_whose_services_write_no_spans_says_so_and_what_to_look_at(collect):
    def unanswered(work, chance):
        work.inner[0].inner = []

    found = list(traces(10, change=unanswered))

    directory, collected = collect(Store(found), found)

    (note,) = collected.notes
    assert note.startswith("traces: no service wrote a span into any of 10 traces. Look at enabled")
    assert "hmac_keys" in note
    assert "`osbench-coord deployment check`" in note
    assert (
        "There are no spans of services: their time counts for the steps"
        in (collected.sentences[0])
    )
    assert of_run(directory).coverage.unanswered


def test_a_run_that_receives_spans_says_what_to_look_at_in_its_services(collect):
    def unanswered(work, chance):
        work.inner[0].inner = []

    found = list(traces(5, change=unanswered))

    _, collected = collect(Store(found), found, received=True)

    notes = " ".join(collected.notes)
    assert "no service wrote a span into any of 5 traces" in notes
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in notes
    assert "hmac" not in notes


def test_spans_that_come_into_files_while_the_store_is_read_are_in(collect, tmp_path):
    found = list(traces(10))
    stored = [
        Trace(trace_id=one.trace_id, spans=tuple(s for s in one.spans if s.name != "reserve"))
        for one in found
    ]
    file = tmp_path / "spans.json"
    file.write_text(json.dumps(to_otlp(found[:3])))
    store = Store(stored, meanwhile=lambda: file.write_text(json.dumps(to_otlp(found))))

    directory, collected = collect(store, found, file, tmp_path / "nothing")

    coverage = of_run(directory).coverage
    assert (coverage.traces, coverage.services["stock/engine"].count) == (10, 10)
    assert len(collected.notes) == 1
    (kept,) = Archive(directory.path).traces()
    assert kept.is_whole
