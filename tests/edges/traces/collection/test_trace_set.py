"""Reads what commands work on: limits of a task that predictions are compared with."""

import json

import numpy as np

from helpers.synthetic_traces import table_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.trace_set import duration_limits, predicted_loads


def test_limits_on_iterations_of_the_whole_load():
    sla = {
        "percentile": [
            {"p": 95, "max_s": 0.5, "of": "response"},
            {"p": 99, "max_s": 1, "over_s": 10},
            {"p": 99, "max_s": 1, "action": "shop.buy"},
        ],
        "max_seconds_per_iteration": 2,
        "max_avg_duration": 0.2,
        "failure_rate": {"max": 0},
    }

    found = [(one.criterion, one.p, one.max_s, one.of) for one in duration_limits(sla)]

    assert found == [
        ("percentile", 95.0, 0.5, "response"),
        ("max_seconds_per_iteration", 100.0, 2.0, "service"),
        ("max_avg_duration", None, 0.2, "service"),
    ]
    one = next(duration_limits({"percentile": {"p": 50, "max_s": 1}}))
    assert (one.p, one.max_s, one.of) == (50.0, 1.0, "service")


def test_loads_are_those_of_the_summary(tmp_path):
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    directory.close()
    features = table_of(np.full((3, 1), 10**9))
    before = predicted_loads(directory, features)
    path = directory.path
    (path / "run.json").write_text(json.dumps({"workloads": [{"sla": {"max_avg_duration": 1}}]}))
    offered = {"concurrency": None, "rate": 5.0}
    (path / "summary.json").write_text(json.dumps({"workloads": [{"offered": offered}]}))

    (load,) = predicted_loads(directory, features)

    assert before == ()
    assert load.is_open is True
    assert [one.criterion for one in load.limits] == ["max_avg_duration"]
