"""Verdicts on a workload while its load goes on, and when it has ended."""

from __future__ import annotations

from types import SimpleNamespace

from helpers.loads import Timed, workload
from helpers.result_rows import row
from helpers.stored_runs import WORKER, block
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.messages import Block
from osbench.common.task import Named
from osbench.coordinator.load.run.workload.workload_outcome import verdicts_of
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator

CRITERIA = [
    Named(name="drill", config={"failed": {"max": 5}}),
    Named(name="failure_rate", config={"max": 0}),
]


def test_a_drill_is_judged_when_its_load_has_ended_and_not_before() -> None:
    one = workload(Timed(), SimpleNamespace())
    one.plan.workload.sla, one.plan.sla_sources = CRITERIA, ["ours", "theirs"]
    results = one.results
    results.sla = SlaEvaluator(CRITERIA, Plugins())
    results.ledger.cut(WORKER, 1, results.ledger.allot(1, 1))
    results.add(Block(run="r", membership="m", number=1, **block([row(1)])))

    during, sources = verdicts_of(one)
    results.ledger.close(1)
    after, all_sources = verdicts_of(one)

    assert ([one.criterion for one in during], sources) == (["failure_rate"], ("theirs",))
    assert [one.criterion for one in after] == ["drill", "failure_rate"]
    assert all_sources == ("ours", "theirs")


def test_a_drill_that_has_ended_is_not_judged_before_its_resources_are_searched() -> None:
    one = workload(Timed(), SimpleNamespace(stop=lambda: None))
    one.plan.workload.sla, one.plan.sla_sources = CRITERIA, ["ours", "theirs"]
    one.results.sla = SlaEvaluator(CRITERIA, Plugins())
    one.results.ledger.close(1)
    one.search_due = True

    before, _ = verdicts_of(one)
    one.abandon(resumable=True)
    after, _ = verdicts_of(one)

    assert [verdict.criterion for verdict in before] == ["failure_rate"]
    assert [verdict.criterion for verdict in after] == ["drill", "failure_rate"]
