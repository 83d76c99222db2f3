"""What is sent to a trace store, where a real one would take gigabytes."""

import json

from helpers.synthetic_traces import events_of, traces
from osbench.edges.traces.sources import redis_store
from osbench.edges.traces.sources.redis_store import EVENTS, RedisTraces


class Store:
    """Says of each list that it is as long as can be; keeps how many are asked for at once."""

    def __init__(self, length, events):
        self.length = length
        self.events = events
        self.together = []
        self._asked = []

    def pipeline(self, *, transaction):
        return self

    def execute_command(self, *command):
        self._asked.append(command)

    def execute(self):
        asked, self._asked = self._asked, []
        ranges = [command for command in asked if command[0] == "LRANGE"]
        if ranges:
            self.together.append(len(ranges))
        return [self.events if command in ranges else self.length for command in asked]


def test_lists_without_end_are_read_a_few_at_a_time(monkeypatch):
    (trace,) = traces(1)
    written = [json.dumps(event).encode() for event in events_of(trace)]
    ids = [f"{number:032x}" for number in range(500)]
    found = {}
    for length in (EVENTS * 5, 10):
        store = Store(length, written)
        monkeypatch.setattr(redis_store, "connect", lambda *_, store=store: store)

        assert [one.trace_id for one in RedisTraces("redis://h").read(ids)] == ids
        found[length] = max(store.together)

    assert found == {EVENTS * 5: 50_000 // EVENTS, 10: 200}


def test_an_event_nested_without_end_costs_no_other(monkeypatch):
    (trace,) = traces(1)
    written = [json.dumps(event).encode() for event in events_of(trace)]
    store = Store(10, [b"[" * 100_000 + b"]" * 100_000, *written])
    monkeypatch.setattr(redis_store, "connect", lambda *_: store)
    source = RedisTraces("redis://h")

    (found,) = source.read([trace.trace_id])

    assert len(found.spans) == len(trace.spans)
    assert source.skipped == 1
