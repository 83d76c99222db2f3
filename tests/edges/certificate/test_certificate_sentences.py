"""Sentences of a certificate: its headline, and the facts that are not proved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.certified_runs import certified_run, signing_key, statement_of
from osbench.coordinator.report.model.workload_parts import SearchReport
from osbench.coordinator.results.accounting.totals import Offered
from osbench.edges.certificate.certificate_file import Certificate
from osbench.edges.certificate.certificate_sentences import (
    headline,
    limit_words,
    offered_words,
    unproved_facts,
)
from osbench.edges.certificate.sealed_statement import SealedStatement, SealedWorkload
from osbench.edges.certificate.verification import Verified


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> SealedStatement:
    """A true statement."""
    return statement_of(certified_run(tmp_path_factory.mktemp("data")))


def of(statement: SealedStatement, *workloads: SealedWorkload, **parts: Any) -> SealedStatement:
    """The statement with other workloads, or other parts of its evidence."""
    found = workloads or statement.evidence.workloads
    return replace(statement, evidence=replace(statement.evidence, workloads=found, **parts))


def test_a_capacity_comes_with_interval_limits_trials_and_sums(statement: SealedStatement) -> None:
    (workload,) = statement.evidence.workloads
    search = SearchReport(kind="found", rate=1064.0, low=806.0, high=1419.0, held=1000.0)
    searching = replace(workload, search=search, limits={"percentile": {"p95.max_s": 0.1}})

    found = headline(of(statement, workload, searching).evidence)

    assert found == (
        "Capacity 1,064/s, with 95 % between 806 and 1,419/s (p95 ≤ 100 ms), 0 trials,"
        " 59 iterations, 2 of them failed, none lost; 1 more workload met all criteria."
    )


def test_a_missed_criterion_comes_first(statement: SealedStatement) -> None:
    (workload,) = statement.evidence.workloads
    first, second = workload.criteria
    missing = replace(workload, criteria=(replace(first, success=False), second))

    found = headline(of(statement, workload, missing).evidence)

    assert "not within failure_rate ≤ 5" in found
    assert "1 of 2 workloads missed criteria" in found


def test_advice_for_the_operator_is_left_out(statement: SealedStatement) -> None:
    (workload,) = statement.evidence.workloads
    search = SearchReport(kind="above", held=40.0, advice="raise `high`")

    found = headline(of(statement, replace(workload, search=search)).evidence)

    assert found.startswith("40/s sustained, the highest rate that was tried (failure_rate ≤ 5")


def test_limits_and_loads_are_named_with_their_units(statement: SealedStatement) -> None:
    (workload,) = statement.evidence.workloads
    limits = {"throughput": {"min": 5.0}, "own": {"x.y": 3.0}, "plain": {"limit": 2.0}}
    opened = Offered(rate_planned=100.0, rate_offered=99.8)

    found = list(limit_words(replace(workload, limits=limits)))

    assert found == ["own x.y 3", "plain limit 2", "throughput ≥ 5"]
    assert offered_words(replace(workload, offered=opened)) == ("99.8/s offered of 100/s requested")
    assert offered_words(replace(workload, offered=Offered())).startswith("an open load")


def test_facts_that_weaken_a_certificate_are_named(statement: SealedStatement) -> None:
    (workload,) = statement.evidence.workloads
    first, second = workload.criteria
    reported = replace(workload, criteria=(replace(first, judged_again=False), second))
    weak = of(statement, reported, lag_limit_s=60.0, changes=2)

    found = unproved_facts(
        Verified(
            certificate=Certificate(statement=weak, key=signing_key().public),
            is_known_key=True,
            has_files=True,
            has_task=False,
        )
    )

    text = "\n".join(found)
    assert "they could be 60.0 s late" in text
    assert "changed by hand 2 times under load" in text
    assert "only reported, since they are on spans: failure_rate" in text
    assert "Who holds the key" not in text
