"""The causes that bound a load: each row of the table from its evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from helpers.sample_reports import constant_workload, rps_workload
from osbench.common.protocol.columns import Failure
from osbench.coordinator.report.findings.load_bounds import load_bounds
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Bound, Offered
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

LIMIT_S = 0.1
#: Cores of the workers' host.
CORES = 4


def statistics(start_lag_s: float = 0.001, service_s: float = 0.1) -> WorkloadStatistics:
    found = WorkloadStatistics()
    found.start_lag.add(np.full(1000, int(start_lag_s * 1e9)))
    found.service.ok.add(np.full(1000, int(service_s * 1e9)))
    return found


def worker(**facts: Any) -> WorkerFigures:
    return WorkerFigures(
        **{"host": "gen1", "cpu_mean": 0.2, "cpu_max": 0.3, "waiting": 0.01, "cores_used": 0.5}
        | {"virtual_users": 256, "cores": CORES}
        | facts
    )


def outcome(
    *workers: WorkerFigures,
    seen: WorkloadStatistics | None = None,
    coroutines: bool = True,
    **drops: int,
) -> WorkloadOutcome:
    """An open load of 1,000 arrivals at 100/s."""
    dropped = sum(drops.values())
    return replace(
        rps_workload(),
        statistics=seen or statistics(),
        accounting=Accounting(planned=1000, ok=1000 - dropped, dropped=dropped, drops=drops),
        offered=Offered(duration_s=10.0, rate_planned=100.0, rate_offered=99.0),
        workers=workers or (worker(),),
        coroutines=coroutines,
    )


def bound(of: WorkloadOutcome, lag_limit_s: float = LIMIT_S) -> Bound:
    (found,) = load_bounds(of, lag_limit_s)
    return found


def late(p50_s: float, p99_s: float, *, threads: bool = False) -> WorkloadStatistics:
    """Loops or threads that are late so often."""
    found = statistics()
    lags = np.array([int(p50_s * 1e9)] * 1900 + [int(p99_s * 1e9)] * 100)
    found.add_process(lags, {}) if threads else found.add_loop(lags, {})
    return found


def test_a_load_as_it_was_asked_for_has_no_bound():
    assert load_bounds(outcome(), LIMIT_S) == ()


def test_a_few_drops_bind_nothing():
    assert load_bounds(outcome(capacity=8, late=2, max_concurrency=10), LIMIT_S) == ()


def test_a_service_that_does_not_answer_is_at_fault_while_the_loops_are_in_time():
    seen = late(58e-6, 0.001)
    seen.start_lag.add(np.full(1000, 10**9))

    found = bound(outcome(seen=seen, capacity=276))

    assert (found.cause, found.fault) == ("service", "service")
    assert found.sentence == (
        "the service did not respond in time: 276 of 1,000 arrivals could not be started in time "
        "because all virtual users waited for it (event loops and threads were at most 1.00 ms "
        "late at p99)"
    )


def test_users_that_are_all_busy_need_not_drop_anything_to_tell():
    seen = statistics(start_lag_s=0.5)
    seen.profile.add(np.zeros(256, np.int64), np.full(256, 10**10), np.zeros(0, np.int64))

    assert bound(outcome(seen=seen)).cause == "service"


@pytest.mark.parametrize(("per_s", "outgrown"), [(60, True), (95, True), (130, False)])
def test_a_service_that_answers_ever_later_did_not_keep_up(per_s: float, outgrown: bool) -> None:
    """100 arrivals a second for 10 s, answered one after another; users are not lacking."""
    seen = statistics()
    started = np.arange(1000, dtype=np.int64) * 10_000_000
    ended = np.maximum.accumulate(started - np.arange(1000) * int(1e9 / per_s))
    ended = ended + (np.arange(1000) + 1) * int(1e9 / per_s)
    seen.profile.add(started, ended.astype(np.int64), np.zeros(0, np.int64))

    found = load_bounds(outcome(worker(virtual_users=0), seen=seen), LIMIT_S)

    assert [(one.cause, one.fault) for one in found] == [("service", "service")] * outgrown
    if outgrown:
        assert found[0].sentence.startswith("the service did not keep up with the arrivals: ")


@pytest.mark.parametrize("start_lag_s", [0.001, 0.5])
def test_max_concurrency_is_the_tasks_own_and_says_what_was_needed(start_lag_s):
    seen = statistics(start_lag_s, service_s=0.25)

    found = bound(outcome(seen=seen, max_concurrency=780))

    assert (found.cause, found.fault) == ("max_concurrency", "task")
    assert found.sentence == (
        "the task's own max_concurrency was the limit: 780 of 1,000 arrivals were dropped for it; "
        "the requested rate needs at least 25 virtual users at once"
    )


@pytest.mark.parametrize(
    ("threads", "facts", "cause"),
    [
        (False, {"cpu_mean": 0.98, "cores_used": 1.5}, "generator_cpu"),
        (False, {"waiting": 2.0}, "generator_cpu"),
        (False, {"cpu_mean": 0.3, "cores_used": 3.9}, "other_programs"),
        (False, {"waiting": 2.0, "quota": 2.0, "throttled": 0.43}, "cpu_quota"),
        (True, {"cpu_mean": 1.02, "quota": 2.0, "throttled": 0.43}, "cpu_quota"),
        (False, {"waiting": 2.0, "quota": 2.0, "throttled": 0.01}, "generator_cpu"),
        (True, {"cpu_mean": 1.02, "cores_used": 1.5}, "interpreter_lock"),
        (True, {"cpu_mean": 3.6, "cores_used": 3.95}, "generator_cpu"),
        (False, {"cpu_mean": 0.2}, "late"),
    ],
)
def test_lateness_is_explained_by_cores_the_lock_or_other_programs(threads, facts, cause):
    seen = late(0.01, 0.02, threads=threads)

    found = bound(outcome(worker(**facts), seen=seen, coroutines=not threads))

    assert (found.cause, found.fault) == (cause, "generator")
    assert found.sentence.startswith(
        f"the {'threads' if threads else 'event loops'} of the workers were late by 10.0 ms at p"
    )


def test_coroutine_scenarios_of_few_users_are_late_as_the_threads_that_they_ran_on():
    found = bound(outcome(worker(cores_used=3.9), seen=late(0.01, 0.02, threads=True)))

    assert found.sentence.startswith(
        "the threads of the workers were late by 10.0 ms at p95 and 20.0 ms at p99"
    )


def test_a_python_without_optimisation_is_told_where_the_cpu_was_the_limit():
    facts = {"cpu_mean": 0.98, "cores_used": 1.5}
    slow, other = (
        bound(outcome(worker(**facts, unoptimised=one), seen=late(0.01, 0.02))).sentence
        for one in (True, False)
    )

    assert slow == f"{other}, or take a Python that is built with optimisation"


def test_lateness_is_compared_with_what_is_measured():
    seen = late(0.01, 0.02)
    # 10 ms are nothing to an iteration of a second
    seen.service.ok.add(np.full(10_000, 10**9))

    assert load_bounds(outcome(seen=seen), LIMIT_S) == ()


def test_a_rare_lateness_above_the_limit_is_one_too():
    assert bound(outcome(seen=late(0.0001, 0.2))).cause == "late"


@pytest.mark.parametrize(
    ("p99_s", "limit"),
    [(0.2, "lag_limit_s (0.1 s)"), (0.02, "the limit at p50 (5.00 ms)")],
)
def test_lateness_names_the_limit_that_it_is_above(p99_s, limit):
    found = bound(outcome(seen=late(0.01, p99_s)))

    assert found.sentence.endswith(f", above {limit}: add workers, or take fewer virtual users")


def test_a_limit_that_is_high_allows_as_much():
    assert load_bounds(outcome(seen=late(0.01, 0.2)), 10.0) == ()


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({}, "dispatch"),
        ({"cores_used": 4.0}, "other_programs"),
        ({"waiting": 1.0}, "generator_cpu"),
    ],
)
def test_late_arrivals_with_free_users_are_the_generators(facts, cause):
    found = bound(outcome(worker(**facts), late=150))

    assert (found.cause, found.fault) == (cause, "generator")
    assert found.sentence.startswith("150 of 1,000 arrivals could not be started in time")


def test_a_full_host_is_not_the_service():
    full = worker(cpu_mean=3.5, cores_used=3.95)

    assert bound(outcome(full, capacity=300)).cause == "generator_cpu"


def test_users_that_waited_for_work_are_told():
    offered = Offered(duration_s=10.0, concurrency=4, concurrency_held=0.95, waited_s=0.6)
    closed = replace(outcome(), offered=offered)

    assert bound(closed).sentence == (
        "the sustained concurrency is 95.0%: "
        "a virtual user waited 0.60 s for work, or had no worker"
    )
    lost = replace(closed, workers=(worker(), worker(lost=True)))
    assert bound(lost).cause == "worker_lost"
    busy = replace(closed, workers=(worker(cpu_mean=0.5, cores_used=4.0),))
    assert bound(busy).cause == "other_programs"


def test_a_short_wait_for_work_and_a_load_of_milliseconds_are_no_verdict_on_the_generator():
    waited = Offered(duration_s=3.0, concurrency=3, concurrency_held=0.96, waited_s=0.11)
    short = Offered(duration_s=0.15, concurrency=1, concurrency_held=0.5, waited_s=0.07)

    assert load_bounds(replace(outcome(), offered=waited), LIMIT_S) == ()
    assert load_bounds(replace(outcome(seen=late(0.01, 0.3)), offered=short), LIMIT_S) == ()


def test_lost_iterations_are_told_with_those_dropped_with_a_worker():
    accounting = Accounting(planned=1000, lost=3, dropped=2, drops={"worker_lost": 2})

    found = bound(replace(outcome(), accounting=accounting))

    assert (found.cause, found.fault) == ("worker_lost", "generator")
    assert found.sentence.startswith("5 of 1,000 iterations were lost or dropped with a worker")


def test_iterations_that_the_user_does_not_wait_for_are_not_lost_with_a_worker():
    accounting = Accounting(planned=1000, lost=3, dropped=20, drops={"worker_lost": 20})
    # also where the planned load was over, and only iterations were awaited
    stopped = replace(outcome(), accounting=accounting)

    assert bound(stopped).cause == "worker_lost"
    assert load_bounds(stopped, LIMIT_S, interrupted=True) == ()
    lost_too = replace(stopped, workers=(worker(), worker(lost=True)))
    (found,) = load_bounds(lost_too, LIMIT_S, interrupted=True)
    assert found.cause == "worker_lost"


@pytest.mark.parametrize(("resource", "cause"), [("open files", "open_files"), ("ports", "ports")])
def test_errors_of_the_own_system_are_no_failures_of_the_service(resource, cause):
    seen = statistics()
    failure = Failure(
        number=1, etype="CannotConnect", message="Too many", traceback="", resource=resource
    )
    seen.errors.learn("w", [failure])
    seen.errors.add("w", np.ones(40, np.uint32), np.arange(1, 41))

    found = bound(outcome(seen=seen))

    assert (found.cause, found.fault) == (cause, "generator")
    assert found.sentence.startswith(
        f"40 iterations failed because the workers had no more {resource}: "
    )


@pytest.mark.parametrize(("stall", "cause"), [("lock", "interpreter_lock"), ("stopped", "stopped")])
def test_a_process_that_could_run_nothing_is_told_with_its_cause(stall, cause):
    seen = late(0.0001, 4.0)
    seen.add_process(np.zeros(0, np.int64), {stall: 8_000_000_000})

    found = bound(outcome(seen=seen))

    assert found.cause == cause
    assert "for 8.00 s" in found.sentence


def blocked(beats: int = 2000, **blocked_s: float) -> WorkloadOutcome:
    found = statistics()
    lags = np.full(beats, 10**6)
    found.add_loop(lags, {place: int(lasted * 1e9) for place, lasted in blocked_s.items()})
    return outcome(seen=found)


def test_a_scenario_that_blocks_the_event_loop_is_told_with_its_place():
    found = bound(blocked(shop=0.4, store=1.5))

    assert found.cause == "blocked_loop"
    assert found.sentence.startswith(
        "the scenario blocked the event loop of its workers for 1.90 s, of that 1.50 s at store: "
    )
    assert "run_blocking" in found.sentence


def test_an_event_loop_that_was_blocked_once_is_no_bound():
    assert load_bounds(blocked(shop=0.06), LIMIT_S) == ()


def test_what_a_short_load_imports_first_is_no_bound():
    # 1 % of a short load is less than an import takes
    short = blocked(beats=10, shop=0.09)

    assert load_bounds(short, LIMIT_S) == ()
    assert load_bounds(short, 0.05) != ()


def test_a_closed_load_as_asked_has_no_bound():
    assert load_bounds(constant_workload(), LIMIT_S) == ()
    assert not Counter(constant_workload().accounting.drops)
