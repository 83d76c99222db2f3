import dataclasses
import json

import numpy as np

from bench.evidence import trend_runs
from helpers.queue_runs import Queue
from osbench.edges.history.comparison.comparison_json import trends_json
from osbench.edges.history.comparison.trends import trend_of

QUEUE = Queue(rate=500, duration_s=60)


def test_a_step_of_5_percent_in_30_runs_is_found_and_names_the_runs_around_it():
    runs = trend_runs(QUEUE, np.random.default_rng(1), step=1.05)

    trend = trend_of(runs)

    changes = [change for one in trend.series if one.percent == 50 for change in one.changes]
    assert changes
    for change in changes:
        # a run of the edge can fall on either side
        assert abs(int(change.after_run.removeprefix("run")) - 15) <= 2
        assert int(change.after_run[3:]) - int(change.before_run[3:]) == 1
        assert 1.03 < change.ratio < 1.07
    assert "longer since run run1" in trend.sentence


def test_equal_runs_have_no_change():
    random = np.random.default_rng(2)

    for _ in range(10):
        trend = trend_of(trend_runs(Queue(duration_s=30), random))
        assert not any(one.changes for one in trend.series)
        assert trend.sentence == "No lasting change over 30 runs."


def test_fewer_than_8_runs_are_only_shown():
    random = np.random.default_rng(3)
    trend = trend_of(trend_runs(QUEUE, random, count=7, step=3.0))

    assert [len(one.values_s) for one in trend.series] == [7] * len(trend.series)
    assert not any(one.changes for one in trend.series)
    assert "too few to look for changes" in trend.sentence


def test_a_run_without_a_percentile_leaves_a_gap():
    runs = trend_runs(QUEUE, np.random.default_rng(4), count=9)
    (workload,) = runs[3].summary["workloads"]
    failed = {**workload, "latency": {"service": {"ok": {"count": 0}}}}
    runs[3] = dataclasses.replace(runs[3], summary={**runs[3].summary, "workloads": [failed]})

    trend = trend_of(runs)

    first = trend.series[0]
    assert first.action == ""
    assert first.values_s[3] is None
    assert sum(value is None for value in first.values_s) == 1


def test_the_json_object_has_the_ratio_of_each_change():
    trend = trend_of(trend_runs(QUEUE, np.random.default_rng(1), step=1.2))

    found = json.loads(json.dumps(trends_json([trend])))

    changes = [one for series in found["trends"][0]["series"] for one in series["changes"]]
    assert changes
    assert all(1.1 < one["ratio"] < 1.3 for one in changes)
