import jsonschema
import pytest

from osbench.coordinator.plugins.sla.failure_rate import FailureRate
from osbench.coordinator.results.accounting.totals import Accounting


class Counts:
    """Statistics of an accounting alone."""

    def __init__(self, **states):
        self.accounting = Accounting(**states)

    def count(self, state):
        return self.accounting.state(state)


def test_timed_out_iterations_count_as_failed():
    verdict = FailureRate({"max": 10}).check(Counts(ok=80, failed=10, timed_out=10))

    assert not verdict.success
    assert verdict.criterion == "failure_rate"
    assert verdict.detail == "20 of 100 iterations failed: 20 %, allowed at most 10 %"


def test_lost_dropped_and_unstarted_iterations_do_not_count():
    states = Counts(ok=9, failed=1, lost=100, dropped=100, not_started=100)

    assert FailureRate({"max": 10}).check(states).success
    assert not FailureRate({"max": 9.99}).check(states).success


def test_failures_can_be_demanded():
    criterion = FailureRate({"min": 50})

    assert criterion.check(Counts(ok=1, failed=1)).success
    assert not criterion.check(Counts(ok=2, failed=1)).success


def test_without_data_it_fails():
    verdict = FailureRate({"max": 100}).check(Counts(lost=5))

    assert not verdict.success
    assert verdict.detail == "no iteration has ended"


@pytest.mark.parametrize("config", [{}, {"max": 101}, {"min": -1}, {"max": "1"}, {"mx": 1}, 5])
def test_the_schema_refuses(config):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, FailureRate.CONFIG_SCHEMA)
