"""Changes of a load in the journal, and the stages that they begin."""

import pytest

from helpers.result_rows import row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.stage_statistics import StageStatistics
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

SECOND = 1_000_000_000
CHANGE = LoadChange(
    request="17", at_s=20.5, level=None, number=3, skipped=2, late_s=1.5, asked=((20.5, 7.0),)
)


def test_a_change_is_what_its_record_says():
    record = CHANGE.to_record(4)

    assert (record["do"], record["workload"]) == ("control", 4)
    assert LoadChange.of(record) == CHANGE


def test_accounts_keep_changes_and_begin_stages():
    accounts = Accounts()
    stages = StageStatistics(((0.0, 5.0),), is_open=True, lasts_s=60)
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), Plugins()), stages=stages)
    accounts.register(0, results)
    results.statistics.add(decode_rows(encode_rows([row(1, 2), row(2, 3)], [], 0)), worker="w")

    accounts.apply(CHANGE.to_record(0))
    accounts.apply(CHANGE.to_record(1))

    assert accounts.changes[0] == accounts.changes[1] == [CHANGE]
    found = [(one.from_s, one.to_s, one.begin, one.end, one.ok) for one in stages.figures(99)]
    assert found == [(0, 20.5, 5, 5, 2), (20.5, 60, 7, 7, 0)]
    first = next(stages.figures(99))
    assert first.p50_s == pytest.approx(1, rel=0.01)
    assert (first.ended_per_s, first.in_flight) == pytest.approx((2 / 20.5, 2 / 20.5))


def row(number, due_s):
    due = int(due_s * SECOND)
    return row_of(number, int(Outcome.OK), due, due, due + SECOND, 0, 0, (), None)


def test_a_change_within_a_ramp_ends_it_at_the_level_it_had():
    stages = StageStatistics(((0.0, 0.0), (10.0, 100.0), (20.0, 0.0)), is_open=True, lasts_s=20)
    stages.add(decode_rows(encode_rows([row(1, 2), row(2, 3)], [], 0)))

    stages.change(5.0, ((5.0, 9.0),))
    stages.add(decode_rows(encode_rows([row(3, 6), row(4, 12)], [], 0)))

    found = [(one.from_s, one.to_s, one.begin, one.end, one.ok) for one in stages.figures(99)]
    assert found == [(0, 5, 0, 50, 2), (5, 20, 9, 9, 2)]


def test_back_to_the_plan_has_its_stages():
    stages = StageStatistics(((0.0, 3.0), (20.0, 3.0), (30.0, 9.0)), is_open=True, lasts_s=30)

    stages.change(5.0, ((5.0, 0.0),))
    stages.change(10.0, ((10.0, 3.0), (20.0, 3.0), (30.0, 9.0)))

    found = [(one.from_s, one.to_s, one.begin, one.end) for one in stages.figures(99)]
    assert found == [(0, 5, 3, 3), (5, 10, 0, 0), (10, 20, 3, 3), (20, 30, 3, 9)]
