from types import SimpleNamespace

import numpy as np
import pytest

from osbench.common.deployment.record import Deployment
from osbench.common.values.histogram import Histogram
from osbench.coordinator.load.run.sampling import SampleRatePlan, planned_in_all, sampling
from osbench.edges.traces.collection.overhead import tracing_overhead
from osbench.edges.traces.collection.traced_iterations import Latencies

PLAN = SampleRatePlan(tail_percent=99, tail_traces=50, budget=512 << 20, spans_per_trace=30)


@pytest.mark.parametrize(
    ("iterations", "rate", "reason"),
    [
        (100_000, 0.05, "of 100,000 iterations about 50 traced ones will be above p99"),
        (5000, 1.0, "of 5,000 iterations about 50 traced ones will be above p99"),
        (1000, 1.0, "all of them: of 1,000 iterations only about 10 are above p99"),
        (
            None,
            1.0,
            "all of them: the number of iterations is not known, nor whether 512 MiB"
            " are enough for their traces",
        ),
    ],
)
def test_a_rate_is_planned_for_slow_traces_enough(iterations, rate, reason):
    found, said = PLAN.rate(iterations)

    assert found == pytest.approx(rate)
    assert said.startswith(reason)


def test_the_budget_of_the_store_comes_first():
    plan = SampleRatePlan(tail_percent=99.9, tail_traces=50, budget=10 << 20, spans_per_trace=100)

    rate, reason = plan.rate(10_000)

    assert rate * 10_000 * 2 * 450 * 100 == pytest.approx(10 << 20)
    assert reason == (
        "the most that fits into 10 MiB; of 10,000 iterations about 0 traced ones will be above"
        " p99.9, of 50 wanted"
    )


def test_workloads_divide_the_budget_by_their_iterations():
    plan = SampleRatePlan(tail_percent=99, tail_traces=50, budget=10 << 20, spans_per_trace=100)

    rates = [plan.rate(number, 40_000) for number in (10_000, 30_000)]

    kept = sum(rate * number for (rate, _), number in zip(rates, (10_000, 30_000), strict=True))
    assert kept * 2 * 450 * 100 == pytest.approx(10 << 20)
    assert rates[0][1].startswith(
        "the most that fits into 10 MiB of all 40,000 iterations of the task; of"
    )


def test_what_is_not_profiled_takes_no_part_of_the_budget():
    conf = SimpleNamespace(benchmark=SimpleNamespace(enable_profiler=True))
    on, off = (SimpleNamespace(enable_profiler=one) for one in (None, False))

    assert (
        planned_in_all(
            [(on, 100, None), (off, 1000, True), (on, None, None), (on, 7, None), (on, 9, False)],
            None,
            conf,
        )
        == 107
    )


@pytest.mark.parametrize(
    ("of_workload", "of_deployment", "of_source", "state"),
    [
        (None, None, None, "on"),
        (None, None, True, "on"),
        (None, None, False, "switched off"),
        (None, True, False, "on"),
        (True, False, False, "on"),
        (None, False, True, "switched off"),
    ],
)
def test_the_nearest_switch_of_tracing_counts(of_workload, of_deployment, of_source, state):
    made = traced(of_workload, of_deployment, 1.0, of_source=of_source)

    assert (made.state, made.rate) == (state, 1.0 if state == "on" else 0.0)


def test_tracing_at_a_rate_of_0_is_not_on():
    assert traced(None, None, 0.0).state == "sample rate 0"
    assert traced(None, None, 0.001).state == "on"
    assert traced(False, None, 0.0).state == "switched off"


@pytest.mark.parametrize(
    ("store", "state"),
    [
        ("redis://h:6379", "on"),
        ("mongodb://h", "store not redis://"),
        (None, "no store in the record"),
    ],
)
def test_a_store_that_cannot_be_read_is_named(store, state):
    record = {"profiler_hmac_key": "key", "profiler_conn_str": store}
    deployment = Deployment.from_spec("shop", {"osbench": record})
    benchmark = SimpleNamespace(enable_profiler=True, profiler_sample_rate=1.0)

    made = sampling(
        SimpleNamespace(enable_profiler=None), deployment, SimpleNamespace(benchmark=benchmark)
    )

    assert (made.state, made.rate) == (state, 1.0)


def traced(of_workload, of_deployment, rate, **more):
    """Tracing of a workload in a cloud with key and store."""
    benchmark = SimpleNamespace(enable_profiler=True, profiler_sample_rate=rate)
    deployment = SimpleNamespace(
        enable_profiler=of_deployment,
        profiler_hmac_key="key",
        profiler_conn_str="redis://h:6379",
        readable_store="redis://h:6379",
    )
    workload = SimpleNamespace(enable_profiler=of_workload)
    return sampling(workload, deployment, SimpleNamespace(benchmark=benchmark), **more)


def latencies(traced_ms, untraced_ms, count=4000):
    chance = np.random.default_rng(1)

    def drawn(middle):
        histogram = Histogram()
        histogram.add((middle * 1e6 * chance.lognormal(0, 0.2, count)).astype(np.int64))
        return histogram

    return Latencies(traced=drawn(traced_ms), untraced=drawn(untraced_ms))


def test_what_tracing_costs_has_an_interval():
    cost = tracing_overhead(latencies(11.0, 10.0))

    assert cost.p50.low_s < 0.001 < cost.p50.high_s
    assert cost.p50.low_s > 0.0005
    assert cost.p50.added_s == pytest.approx(0.001, abs=0.0003)
    assert cost.p99.low_s < cost.p99.added_s < cost.p99.high_s


def test_no_cost_is_found_where_there_is_none():
    cost = tracing_overhead(latencies(10.0, 10.0))

    assert cost.p50.low_s < 0 < cost.p50.high_s


def test_few_iterations_give_no_interval():
    cost = tracing_overhead(latencies(10.0, 10.0, count=5))

    assert cost.p50.low_s is None
    assert cost.traced == cost.untraced == 5


def test_without_a_control_group_the_cost_is_not_known():
    some = latencies(10.0, 10.0)

    assert tracing_overhead(Latencies(traced=some.traced, untraced=Histogram())) is None
    assert tracing_overhead(Latencies(traced=Histogram(), untraced=some.untraced)) is None
