import json

import pytest

from helpers.synthetic_traces import MS, Work, events_of, shuffled, spans_of, traces
from osbench.edges.traces.collection.archive import Spool
from osbench.edges.traces.model.spans import (
    LOST_START,
    LOST_STOP,
    STEPPED,
    span_key,
    trace_key,
)
from osbench.edges.traces.sources.pairing import event_of, instant_us, pair

#: An event as OSProfiler writes it.
WRITTEN = {
    "name": "x-start",
    "base_id": "a",
    "trace_id": "b",
    "parent_id": "a",
    "timestamp": "2020-02-27T08:04:25.789433",
    "project": None,
    "service": 7,
}


def test_an_event_that_hardly_says_anything_is_one():
    assert event_of(WRITTEN).service == "7"


def read(events, **options):
    (trace,) = pair(map(event_of, events), **options).values()
    return trace


def test_a_trace_comes_back_as_it_was_written():
    (written,) = traces(1)

    found = read(events_of(written))

    assert found.trace_id == written.trace_id
    for span, again in zip(written.spans, found.spans, strict=True):
        assert again._replace(attributes={}) == span._replace(kind="")
    assert found.is_whole
    assert found.duplicates == 0


def test_order_and_repetition_change_no_span():
    (written,) = traces(1)
    events = events_of(written)

    found = read(shuffled(events, 3))

    assert found.spans == read(events).spans
    assert found.duplicates == len(shuffled(events, 3)) - len(events)


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_starts_the_first_counts_and_of_several_stops_the_last(turned):
    start, stop = events_of(spans_of(Work(name="a", start=10, length=20)))
    (earlier, later) = events_of(spans_of(Work(name="a", start=0, length=90)))
    # the other way round nothing changes
    events = [start, earlier, stop, later]

    (span,) = read(events[::-1] if turned else events).spans

    assert span.start_ns % 10**9 == 0
    assert span.duration_ns == 90 * MS


def test_names_and_microseconds_are_kept_whole():
    work = Work(name="engine-start-workflow", start=0.0, length=0.001)

    (span,) = read(events_of(spans_of(work))).spans

    assert span.name == "engine-start-workflow"
    assert span.duration_ns == 1000


def test_a_lost_stop_and_a_lost_start_are_marked():
    (written,) = traces(1)
    events = events_of(written)
    root_stop = events.index(next(e for e in events if e["name"] == "osbench.iteration-stop"))
    db_start = events.index(next(e for e in events if e["name"] == "db-start"))

    found = read([e for at, e in enumerate(events) if at not in (root_stop, db_start)])

    marks = {span.name: span.marks for span in found.spans if span.marks}
    assert marks == {"osbench.iteration": LOST_STOP, "db": LOST_START}
    assert found.lost_stops == 1
    assert not found.is_whole


def test_a_missing_parent_makes_a_trace_less_than_whole():
    (written,) = traces(1)

    found = read([event for event in events_of(written) if not event["name"].startswith("wsgi")])

    assert not found.is_whole


def test_a_clock_that_steps_back_gives_no_negative_duration():
    (written,) = traces(1)
    events = events_of(written)
    stop = next(e for e in events if e["name"] == "db-stop")
    stop["timestamp"] = "2020-01-01T00:00:00.000000"

    span = next(span for span in read(events).spans if span.marks)

    assert (span.duration_ns, span.marks) == (0, STEPPED)


def test_arguments_parameters_queries_and_messages_are_left_out():
    work = Work(name="osbench.iteration", start=0, length=9, error="Boom").add(
        Work(name="wsgi", start=1, length=5, detail="GET /v2/queues/4e1f?token=s3cret"),
        Work(name="db", start=2, length=1, detail="SELECT * FROM t WHERE name = 's3cret'"),
    )
    events = events_of(spans_of(work), function={"name": "f", "args": "s3cret"}, iteration=7)

    found = read(events)

    said = json.dumps([tuple(span) for span in found.spans])
    assert not any(secret in said for secret in ("s3cret", "hunter2", "a secret of mine"))
    assert [span.detail for span in found.spans] == [
        "f",
        "GET /v2/queues/{id}",
        "SELECT * FROM t WHERE name = ?",
    ]
    assert found.spans[0].error == "Boom"
    assert found.spans[0].attributes == {"iteration": 7}


def test_all_that_was_said_is_kept_where_it_is_asked_for():
    (written,) = traces(1)

    found = read(events_of(written), everything=True)

    assert "hunter2" in json.dumps([span.attributes for span in found.spans])


def test_a_parent_is_found_by_the_id_that_opentelemetry_knows():
    assert span_key("0123-4567-89AB-CDEF-0123-4567-89AB-CDEF") == "0123456789abcdef"
    assert span_key("00f067aa0ba902b7") == "00f067aa0ba902b7"
    assert span_key("made-up") == "madeup"
    assert trace_key("F12E75D5-5d59-4cbc-b74d-357f19290dd7") == "f12e75d55d594cbcb74d357f19290dd7"


def test_an_id_in_capitals_is_the_same_trace():
    (written,) = traces(1)
    start, *rest = events_of(written)

    (found,) = pair(map(event_of, [start | {"base_id": start["base_id"].upper()}, *rest])).values()

    assert len(found.spans) == len(written.spans)


def _odd_events():
    start, stop = events_of(spans_of(Work(name="a", start=10, length=20)))
    deep = json.loads('{"a":' * 700 + "1" + "}" * 700)
    return [
        start
        | {
            "name": "a\ud800-start",
            "project": "x\udfff",
            "info": {
                "host": "h\ud800",
                "run": "r\ud800",
                "iteration": 2**70,
                "etype": "E\ud800",
                "db": {"statement": "SELECT \ud800"},
                "deep": deep,
            },
        },
        # twice at one instant: they are put in order by what they say
        stop | {"info": {"deep": deep}},
        stop | {"info": {"deep": deep, "x": 1}},
    ]


@pytest.mark.parametrize("everything", [False, True])
def test_odd_values_cost_no_trace(tmp_path, everything):
    trace = read(_odd_events(), everything=everything)

    spool = Spool(tmp_path / "spool")
    spool.add(trace)
    (found,) = spool
    spool.close()

    (span,) = found.spans
    assert (span.name, span.service, span.host) == ("a?", "x?/" + span.service[3:], "h?")
    assert (span.detail, span.error) == ("SELECT ?", "E?")
    assert span.attributes["iteration"] == str(2**70)
    assert ("..." in json.dumps(span.attributes)) == everything


def test_an_event_that_is_nested_without_end_is_none():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ValueError, match="malformed"):
        event_of(WRITTEN | {"info": {"host": deep}})


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:01.000002", 1_000_002),
        ("1970-01-01T00:00:01.5", 1_500_000),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T00:00:01.789Z", 1_789_000),
        ("1970-01-01T00:00:01.000002Z", 1_000_002),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:01.000002345", 1_000_002),
        ("1970-01-01T00:00:01.5+00:00", 1_500_000),
        ("1970-01-01T01:30:01.000002+01:30", 1_000_002),
        ("1970-01-01T00:00:01-0100", 3601_000_000),
    ],
)
def test_instants(text, micros):
    assert instant_us(text) == micros


@pytest.mark.parametrize(
    "text",
    [
        *("1970-01-01T00:00:01.x", "1970-01-01T00:00:01 CET", "1970-01-01T00:00:01.5Zulu"),
        *("", "yesterday", "1970-01-01", "1970x01x01T00x00x01.0", "x" * 26),
        # sums of these would not fit 64 bits
        *("9999-01-01T00:00:00.0", "0001-01-01T00:00:00.0"),
    ],
)
def test_a_malformed_time_is_refused(text):
    with pytest.raises(ValueError, match=r"a time of another form|time out of range|invalid"):
        instant_us(text)


@pytest.mark.parametrize(
    "event",
    [
        *({}, {"name": "x-start"}, {"name": "x", "base_id": "a"}, None, {"name": 3}),
        WRITTEN | {"base_id": 5},
        WRITTEN | {"trace_id": ["a"]},
        WRITTEN | {"parent_id": None},
        WRITTEN | {"info": "text"},
        WRITTEN | {"timestamp": 1_500_000_000},
    ],
)
def test_what_is_no_event_is_refused(event):
    with pytest.raises(ValueError, match="event"):
        event_of(event)
