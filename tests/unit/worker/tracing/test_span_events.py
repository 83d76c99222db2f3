import json
import time
import uuid
from datetime import UTC, datetime

from osbench.common.values.trace_mark import TraceMark
from osbench.worker.tracing.span_events import EventFormat, WallClock
from osbench.worker.tracing.trace_ids import IdPool, span_text, uuid_text

#: An instant shortly before a full second, 2026-11-21 10:00:00 UTC.
SECOND_NS = 1_795_255_200 * 10**9


def commands(text):
    """Redis commands as lists of words."""
    rest = text.encode()
    found = []
    while rest:
        head, rest = rest.split(b"\r\n", 1)
        words = []
        for _ in range(int(head[1:])):
            size, rest = rest.split(b"\r\n", 1)
            words.append(rest[: int(size[1:])].decode())
            rest = rest[int(size[1:]) + 2 :]
        found.append(words)
    return found


def written(spans, expiry_s=60):
    ids = IdPool(TraceMark("r")).mint()
    form = EventFormat("a-host", "worker", expiry_s, lambda at: SECOND_NS + at)
    push, expire = commands(form.commands((ids, tuple(spans))))
    return ids, push, expire


def test_a_trace_is_one_push_and_one_expiry():
    ids, push, expire = written([(0, -1, "root", -5000, 7000, ',"n":1', "")], expiry_s=3600)

    key = f"osprofiler_opt:{uuid_text(ids[0])}"
    assert push[:2] == ["LPUSH", key]
    assert expire == ["EXPIRE", key, "3600"]


def test_events_are_osprofilers():
    ids, push, _ = written([(0, -1, "root", -5000, 7000, ',"n":1', ',"etype":"E"')])

    start, stop = (json.loads(event) for event in push[2:])
    base, root = uuid_text(ids[0]), span_text(ids, 0)
    assert start == {
        "name": "root-start",
        "base_id": base,
        "trace_id": root,
        "parent_id": base,
        "timestamp": "2026-11-21T09:59:59.999995",
        "info": {"host": "a-host", "n": 1},
        "project": "osbench",
        "service": "worker",
    }
    assert stop == {
        **start,
        "name": "root-stop",
        "timestamp": "2026-11-21T10:00:00.000007",
        "info": {"host": "a-host", "etype": "E"},
    }


def test_the_newest_event_becomes_the_head_of_the_list():
    spans = [
        (1, 0, "first", 10_000, 20_000, "", ""),
        (3, 2, "inner", 40_000, 50_000, "", ""),
        (2, 0, "second", 30_000, 60_000, "", ""),
        (0, -1, "root", 0, 70_000, "", ""),
    ]

    ids, push, _ = written(spans)

    events = [json.loads(event) for event in push[2:]]
    assert [event["name"] for event in events] == [
        "root-start",
        "first-start",
        "first-stop",
        "second-start",
        "inner-start",
        "inner-stop",
        "second-stop",
        "root-stop",
    ]
    assert events[4]["parent_id"] == events[3]["trace_id"] == span_text(ids, 2)
    assert len({uuid.UUID(event["trace_id"]) for event in events}) == 4


def test_names_of_any_kind_are_written():
    names = ['quo"te', "new\nline", "łódź", "x" * 5000, 17]

    for name in names:
        _, push, _ = written([(0, -1, name, 0, 1, "", "")])

        said = json.loads(push[2])["name"]
        assert said == f"{str(name)[:200]}-start"


def test_the_wall_clock_is_the_hosts():
    clock = WallClock()

    before = datetime.now(UTC).timestamp()
    said = clock(time.monotonic_ns()) / 1e9
    after = datetime.now(UTC).timestamp()

    assert before - 0.001 <= said <= after + 0.001
