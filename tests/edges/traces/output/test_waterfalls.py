import io

import pytest
from rich.console import Console

from helpers.drawn_traces import set_of
from helpers.synthetic_traces import Work, events_of, spans_of, traces
from osbench.common.plugin.atomic import PAUSE
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.output import trace_text
from osbench.edges.traces.output.waterfalls import waterfall
from osbench.edges.traces.sources.pairing import event_of, pair


def shown(root, **options):
    trace = spans_of(root)
    return waterfall(set_of(trace), trace, **options)


def ms(segments):
    return [(one.kind, round(one.from_s * 1e3, 3), round(one.to_s * 1e3, 3)) for one in segments]


def test_segments_show_own_work_on_the_path_waiting_and_pauses():
    root = Work(name="osbench.iteration", start=0, length=100).add(
        Work(name="shop.buy", start=10, length=60).add(
            Work(name="wsgi", start=20, length=40, service="shop/api", host="b", error="Boom")
        ),
        Work(name="beside", start=15, length=20),
        Work(name=PAUSE, start=80, length=20),
    )

    found = shown(root)

    rows = {row.name: row for row in found.rows}
    assert ms(rows["osbench.iteration"].segments) == [
        *(("span", 0, 100), ("path", 0, 10), ("path", 70, 80)),
    ]
    # `beside` was not waited for
    assert ms(rows["beside"].segments) == [("span", 15, 35)]
    assert ms(rows["shop.buy"].segments) == [
        *(("span", 10, 70), ("waited", 10, 20), ("path", 60, 70)),
    ]
    assert ms(rows["wsgi"].segments) == [("error", 20, 60), ("path", 20, 60)]
    assert ms(rows[PAUSE].segments) == [("span", 80, 100), ("pause", 80, 100)]
    assert [row.name for row in found.rows if row.is_pause] == [PAUSE]
    assert (found.duration_s, found.paused_s, found.end_s) == (0.1, 0.02, 0.1)
    on_path = sum(one.to_s - one.from_s for row in found.rows for one in row.segments[1:])
    assert on_path == pytest.approx(found.duration_s)
    assert found.cause == "shop/api wsgi: 40.0 ms of the path (50 %)"


def test_calls_of_one_kind_are_one_cause():
    calls = [
        Work(name="db", start=10 + 10 * n, length=8, detail="SELECT 1", service="s") for n in (0, 1)
    ]
    root = Work(name="osbench.iteration", start=0, length=40).add(
        *calls, Work(name="other", start=30, length=9)
    )

    assert shown(root).cause == "s db SELECT 1: 16.0 ms of the path (40 %) in 2 calls"


def test_an_iteration_that_only_paused_has_no_cause():
    root = Work(name="osbench.iteration", start=0, length=40)
    root.add(Work(name=PAUSE, start=0, length=40))

    assert shown(root).cause == ""


def test_spans_that_go_on_after_the_iteration_are_within_the_picture():
    root = Work(name="osbench.iteration", start=0, length=40)
    root.add(Work(name="notify", start=39, length=60, service="bus"))

    found = shown(root)

    assert (found.duration_s, found.end_s) == (0.04, pytest.approx(0.099))
    assert found.rows[1].outlives


def test_of_very_many_spans_those_on_the_path_are_shown_with_those_around_them():
    root = Work(name="osbench.iteration", start=0, length=10_000)
    for number in range(1000):
        outer = Work(name=f"outer {number}", start=number * 10, length=9)
        length = 9 if number == 777 else 0.001
        root.add(outer.add(Work(name=f"inner {number}", start=number * 10, length=length)))

    found = shown(root, limit=51)

    assert len(found.rows) == 51
    assert found.hidden == 2001 - 51
    names = [row.name for row in found.rows]
    assert names[0] == "osbench.iteration"
    assert "inner 777" in names
    for at, row in enumerate(found.rows[1:], 1):
        assert row.depth <= found.rows[at - 1].depth + 1


def test_a_trace_without_spans_has_no_rows():
    trace = Trace(trace_id="ab" * 16, spans=())

    found = waterfall(set_of(trace), trace)

    assert (found.rows, found.left_out, found.duration_s, found.hidden) == ((), (), 0.0, 0)


def test_ids_and_fields_are_those_that_were_written():
    (trace,) = traces(1)
    events = events_of(trace)
    (read,) = pair(map(event_of, events), everything=True).values()

    found = waterfall(set_of(read), read)

    by_id = {row.span_id: row for row in found.rows}
    starts = [event for event in events if event["name"].endswith("-start")]
    assert by_id.keys() == {event["trace_id"] for event in starts}
    for event in starts:
        row = by_id[event["trace_id"]]
        assert row.parent_id == event["parent_id"]
        assert (row.project, row.service) == (event["project"], event["service"])
        assert row.started_at == event["timestamp"]
    query = next(row for row in found.rows if row.name == "db")
    assert dict(query.fields) == {
        "db.statement": "SELECT items",
        "db.params.password": "hunter2",
    }


def test_both_values_are_kept_where_start_and_stop_differ():
    (trace,) = traces(1)
    events = events_of(trace)
    for event in events:
        event["info"]["at"] = "end" if event["name"].endswith("-stop") else "begin"

    (whole,) = pair(map(event_of, events), everything=True).values()
    (less,) = pair(map(event_of, events)).values()

    for span in whole.spans:
        assert (span.attributes["at"], span.attributes["at (start)"]) == ("end", "begin")
    assert all("at" not in span.attributes for span in less.spans)


def test_a_ranking_tells_of_pauses():
    out = io.StringIO()

    trace_text.show_ranking(Console(file=out, width=200), (), 0, 3, 114.2)

    assert out.getvalue().splitlines()[-1] == (
        "pauses of the scenario: 3 pauses, 114 s in all, in none of the times above"
    )


def test_repeated_siblings_are_a_fold_with_the_sum_of_all_of_them():
    root = Work(name="osbench.iteration", start=0, length=5000).add(
        *(Work(name="step 8", start=at, length=0.5) for at in range(4900)),
        Work(name="commit", start=4950, length=20),
    )

    found = shown(root)

    (fold,) = found.folds
    assert (fold.name, fold.count, fold.depth) == ("step 8", 4900, 1)
    assert fold.duration_s == pytest.approx(2.45)
    assert fold.hidden == 4900 - sum(row.fold == 0 for row in found.rows)
    assert "commit" in {row.name for row in found.rows}
    assert len(fold.segments) <= 201


def test_two_siblings_are_not_folded():
    root = Work(name="osbench.iteration", start=0, length=50).add(
        *(Work(name="step 8", start=at, length=1) for at in (1, 5))
    )

    found = shown(root)

    assert found.folds == ()
    assert {row.fold for row in found.rows} == {-1}
