"""Runs that differ in their load alone, as a staircase."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from helpers.queue_runs import Queue, compared_run
from helpers.sample_loads import stages_workload
from osbench.edges.history.comparison.comparison_json import staircases_json
from osbench.edges.history.comparison.comparison_page import staircases_page
from osbench.edges.history.comparison.load_series import staircases_of

#: An M/M/1 queue of 100/s.
RATES = (20, 35, 50, 65, 80, 90)


def run_at(rate, runner=None, **changed):
    found = Queue(rate=rate, load=rate / 100, duration_s=60)
    latencies = found.run(np.random.default_rng(int(rate)))
    made = compared_run(f"run{rate}", latencies, rate=float(rate))
    (workload,) = made.summary["workloads"]
    service = workload["latency"]["service"]
    times = {"mean": service["ok"]["mean"], **service["ok"]}
    span_s = workload["offered"]["duration_s"]
    workload = {
        **workload,
        "latency": {"service": {"ok": times}, "response": {"ok": times}},
        "throughput": {"ok_per_s": times["count"] / span_s, "span_s": span_s},
        **changed,
    }
    (asked,) = made.manifest["workloads"]
    manifest = {
        **made.manifest,
        "workloads": [{**asked, "runner": runner or {"rps": {"rps": rate}}}],
    }
    return replace(made, manifest=manifest, summary={**made.summary, "workloads": [workload]})


@pytest.fixture(scope="module")
def runs():
    return [run_at(rate) for rate in RATES]


def test_runs_at_several_rates_make_the_staircase_of_the_queue(runs):
    (found,) = staircases_of([*reversed(runs)])

    stairs = found.staircase
    assert [step.load for step in stairs.steps] == [*RATES]
    assert [step.name for step in stairs.steps] == [f"run{rate}" for rate in RATES]
    assert stairs.is_open
    # rho / (1 - rho) are in the queue
    assert stairs.steps[2].concurrency == pytest.approx(1, rel=0.2)
    # a queue of this kind has its greatest power at half of what it can do
    assert 35 <= stairs.knee.load <= 65
    # X = 100 N / (1 + N)
    assert stairs.fit.rate.low < 50 < stairs.fit.rate.high
    assert stairs.fit.contention.value == pytest.approx(0.5, abs=0.1)
    assert stairs.fit.coherency.low == 0


def test_closed_loads_are_told_by_their_users(runs):
    offered = {"concurrency": 4, "rate_planned": None, "rate_offered": None, "duration_s": 60}
    few, many = (
        run_at(rate, offered={**offered, "concurrency": users})
        for rate, users in ((20, 1), (50, 4))
    )

    (found,) = staircases_of([few, many])

    assert not found.staircase.is_open
    assert [(step.load, step.concurrency) for step in found.staircase.steps] == [(1, 1), (4, 4)]
    # an open load among closed ones is no step
    assert staircases_of([runs[0], few]) == []


def test_runs_that_tell_no_load_are_no_steps(runs):
    changing = run_at(70, stages=[asdict(stages_workload().stages[0])])
    idle = run_at(75, throughput={"ok_per_s": None, "span_s": 0.0})
    other = run_at(85, name="Another")

    (found,) = staircases_of([changing, idle, other, *runs])

    assert [step.load for step in found.staircase.steps] == [*RATES]
    assert staircases_of([runs[0], runs[0]]) == []


def test_kinship_is_of_all_but_the_load(runs):
    first, second = runs[:2]
    (asked,) = first.manifest["workloads"]
    other = replace(
        first, manifest={**first.manifest, "workloads": [{**asked, "args": {"size": 11}}]}
    )
    closed = run_at(20, runner={"constant": {"concurrency": 4}})
    alone = run_at(20, workers=[{"host": "a"}])

    assert first.kinship == second.kinship == alone.kinship
    assert first.fingerprint != alone.fingerprint
    assert first.fingerprint != second.fingerprint
    assert len({first.kinship, other.kinship, closed.kinship}) == 3


def test_the_page_and_the_json_have_every_run(runs):
    found = staircases_of(runs)

    page = staircases_page(found)
    document = json.loads(json.dumps(staircases_json(found), allow_nan=False))

    assert all(f"<code>run{rate}</code>" in page for rate in RATES)
    assert page.count('<svg class="series"') == 2
    assert found[0].staircase.fit_sentence in page
    assert "<script" not in page
    (one,) = document["staircases"]
    assert one["workload"] == "Queue.get"
    assert [step["name"] for step in one["staircase"]["steps"]] == [f"run{rate}" for rate in RATES]
