"""The criterion `spans`: what it refuses, what it judges, and when."""

import pytest

from helpers.iterations import columns, ok, statistics
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import SpanFigures, SpanSelection
from osbench.common.task import Named
from osbench.common.values.histogram import Histogram
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.plugins.sla.span_limits import SpanLimits
from osbench.coordinator.task.taskfile import checked_task
from osbench.coordinator.task.taskfile.schema.schema_errors import validate

MS = 1_000_000


def figures(calls, times_ms=(), incomplete=0):
    """Figures of traces, given their number by calls."""
    return SpanFigures(
        traces=sum(calls.values()),
        incomplete=incomplete,
        calls=calls,
        most=40,
        fewest=7,
        durations=Histogram.of(ms * MS for ms in times_ms),
    )


def judged(config, *found):
    assert not validate(config, SpanLimits.CONFIG_SCHEMA, "")
    assert not SpanLimits.check_config(config)
    return SpanLimits(config).check_spans(found)


def test_calls_within_their_limit():
    limit = {"service": "shop", "name": "db*", "calls_per_iteration": {"max": 12}}

    verdict = judged(limit, figures({3: 90, 12: 10}))

    assert verdict.success
    assert verdict.detail == "shop db*: 3 to 12 calls per iteration, at most 12"


def test_one_iteration_with_too_many_calls_is_enough():
    limit = {"service": "shop", "name": "db*", "calls_per_iteration": {"max": 12}}

    verdict = judged(limit, figures({3: 99, 41: 1}))

    assert not verdict.success
    assert verdict.detail == (
        "shop db*: more than 12 calls in 1 of 100 traced iterations, 41 in iteration 40"
    )


def test_a_call_that_is_missing():
    limit = {"name": "cache get", "calls_per_iteration": {"min": 1, "max": 1}}

    assert judged(limit, figures({1: 5})).detail == (
        "cache get: 1 call per iteration, at least 1 and at most 1"
    )
    verdict = judged(limit, figures({0: 2, 1: 3}))
    assert not verdict.success
    assert verdict.detail == (
        "cache get: fewer than 1 call in 2 of 5 traced iterations, 0 in iteration 7"
    )


def test_no_call_where_none_is_allowed():
    limit = {"name": "db DELETE*", "calls_per_iteration": {"max": 0}}

    assert judged(limit, figures({0: 5})).success
    assert not judged(limit, figures({0: 5, 1: 1})).success


def test_durations_and_several_limits():
    limits = [
        {"service": "shop", "name": "db", "p50": 0.1, "p95": 0.1},
        {"name": "cache", "p99": 0.001},
    ]

    verdict = judged(limits, figures({1: 9}, [10] * 50 + [150] * 50), figures({0: 9}))

    assert not verdict.success
    first, second = verdict.detail.split("; ")
    assert first.startswith("p95 of shop db 15")
    assert first.endswith(", allowed 100ms")
    assert second == "p99 of cache: in none of 9 traces"
    assert judged(limits, figures({1: 9}, [10]), figures({1: 9}, [0.5])).success


@pytest.mark.parametrize(
    ("incomplete", "said"),
    [
        (0, "db: no successful iteration has a trace"),
        (7, "db: no trace is complete, of 7 of successful iterations"),
    ],
)
def test_without_a_complete_trace_no_limit_is_met(incomplete, said):
    limit = {"name": "db", "calls_per_iteration": {"max": 1}, "p95": 1}

    verdict = judged(limit, SpanFigures(incomplete=incomplete))

    assert not verdict.success
    assert verdict.detail == said


def document(spans, **workload):
    sla = {"spans": spans}
    one = {"title": "s", "scenario": {"Dummy.dummy": {}}, "sla": sla, **workload}
    return {"version": 2, "title": "t", "subtasks": [one]}


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ({"name": "db"}, "db has no limit: add calls_per_iteration: {max: N}, or one of p50, p90"),
        (
            {"name": "db", "calls_per_iteration": {"min": 3, "max": 2}},
            "calls_per_iteration of db: min 3 is above max 2",
        ),
        ({"service": "shop", "p95": 1}, "name"),
        ({"name": "db", "calls_per_iteration": {"max": -1}}, "max"),
        ({"name": "db", "p95": 0}, "p95"),
        ({"name": "db", "p97": 1}, "p97"),
        ([], "spans"),
    ],
)
def test_limits_that_make_no_sense_are_refused_with_their_place(spans, said):
    with pytest.raises(TaskError) as refused:
        checked_task(document(spans), "task", Plugins())

    assert "sla" in str(refused.value)
    assert said in str(refused.value)


def test_a_search_needs_a_criterion_that_is_judged_under_load():
    runner = {"search": {"start": 1, "end": 5}}
    limit = {"name": "db", "calls_per_iteration": {"max": 1}}

    with pytest.raises(TaskError, match="looks for the load at which a criterion breaks"):
        checked_task(document(limit, runner=runner), "task", Plugins())


def test_spans_are_judged_after_the_run_and_by_no_other_way():
    criteria = [
        Named(name="spans", config=[{"name": "a", "p95": 1}, {"name": "b", "p95": 1}]),
        Named(name="failure_rate", config={"max": 0}),
    ]
    sla, rows = SlaEvaluator(criteria, Plugins()), columns(ok(1))
    sla.add(rows)

    assert [one.criterion for one in sla.judge(statistics(rows))] == ["failure_rate"]
    assert sla.failing(statistics(rows)) == ()
    assert sla.breach(statistics(rows), 5) is None
    assert sla.on_spans == {"spans"}
    assert sla.selections == tuple(SpanSelection(service="*", name=name) for name in "ab")
    (met,) = sla.judge_spans([figures({1: 1}, [1])] * 2, "")
    (lacking,) = sla.judge_spans((), "tracing is switched off")
    assert met.success
    assert (lacking.success, lacking.detail) == (False, "tracing is switched off")


def test_a_plug_in_on_spans_that_raises_fails(tmp_path):
    (tmp_path / "broken.py").write_text(
        "from osbench.plugin import sla\n"
        "class Broken(sla.Sla):\n"
        "    NAME = 'broken'\n"
        "    def selections(self):\n"
        "        return [sla.SpanSelection(service='*', name='db')]\n"
        "    def check_spans(self, figures):\n"
        "        raise KeyError('spans')\n"
    )
    sla = SlaEvaluator([Named(name="broken", config={})], Plugins([str(tmp_path)]))

    (verdict,) = sla.judge_spans([figures({1: 1})], "")

    assert not verdict.success
    assert "the plug-in raises KeyError" in verdict.detail
