import pytest

from osbench.coordinator.results.statistics.interval_doubt import Doubt, DoubtCause


@pytest.mark.parametrize(
    ("doubt", "note"),
    [
        (
            Doubt(cause=DoubtCause.SHORT),
            "no intervals: iterations were scheduled over less than 5 s",
        ),
        (
            Doubt(cause=DoubtCause.FEW, unbounded=(99.0,), bounded_by_s=180),
            "no upper bound of p99: too few separate moments were that slow; p99 takes a load of"
            " about 3 min",
        ),
        (
            Doubt(cause=DoubtCause.STRETCHES, unbounded=(50.0, 95.0, 99.0)),
            "no upper bound of p50, p95 and p99: latency kept its level for long stretches",
        ),
        (
            Doubt(cause=DoubtCause.ROSE, missing=(50.0,), unbounded=(95.0,)),
            "no interval of p50 and no upper bound of p95: latency rose through the load",
        ),
        (
            Doubt(cause=DoubtCause.FELL),
            "latency fell through the load: percentiles depend on when it began and ended",
        ),
    ],
)
def test_what_a_run_does_not_say_is_one_sentence(doubt, note):
    assert doubt.note == note
