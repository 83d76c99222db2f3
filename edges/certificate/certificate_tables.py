"""The tables of a certificate, which its page and its Markdown show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osbench.common.values.outcomes import STATES
from osbench.coordinator.formatting import count, duration, plain, size, three_digits
from osbench.coordinator.report.statements.search_statements import percentile_texts
from osbench.edges.certificate.certificate_sentences import (
    load_words,
    offered_words,
    percentile_words,
)
from osbench.edges.certificate.sealed_statement import RunEvidence, SealedStatement, SealedWorkload

#: Percentiles of a workload.
_PERCENTILES = ("p50", "p90", "p95", "p99")
#: Characters of a cell of foreign text.
_CELL = 300


@dataclass(frozen=True, kw_only=True)
class CertificateTable:
    """A table: title, headings, and rows of texts of as many cells."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def certificate_tables(statement: SealedStatement) -> Iterator[CertificateTable]:
    """Yield the tables of a certificate, the most important first."""
    evidence = statement.evidence
    yield CertificateTable(
        title="Ledger: the final state of each planned iteration",
        headings=("workload", "planned", *(state.replace("_", " ") for state in STATES)),
        rows=[_ledger(one) for one in evidence.workloads],
    )
    yield CertificateTable(
        title="Load, and causes that bound it",
        headings=("workload", "load", "causes"),
        rows=[_load(one) for one in evidence.workloads],
    )
    yield CertificateTable(
        title="Criteria",
        headings=("workload", "criterion", "verdict", "figures", "basis"),
        rows=[row for one in evidence.workloads for row in _criteria(one)],
    )
    yield CertificateTable(
        title="Times of successful iterations, with 95 % intervals",
        headings=("workload", "kind", "count", *_PERCENTILES, "max"),
        rows=[row for one in evidence.workloads for row in _times(one)],
    )
    for one in evidence.workloads:
        if one.search is not None:
            yield _trials(one)
    yield from _surroundings(statement)


def _ledger(one: SealedWorkload) -> list[str]:
    sums = one.accounting
    return [
        plain(one.label, _CELL),
        count(sums.planned),
        *(count(sums.state(state)) for state in STATES),
    ]


def _load(one: SealedWorkload) -> list[str]:
    causes = "; ".join(f"{bound.fault}: {plain(bound.sentence, _CELL)}" for bound in one.bounds)
    return [plain(one.label, _CELL), offered_words(one), causes or "none"]


def _criteria(one: SealedWorkload) -> Iterator[list[str]]:
    for criterion in one.criteria:
        yield [
            plain(one.label, _CELL),
            plain(criterion.criterion, _CELL),
            "met" if criterion.success else "missed",
            plain(criterion.detail, _CELL),
            "judged again" if criterion.judged_again else "as reported",
        ]


def _times(one: SealedWorkload) -> Iterator[list[str]]:
    for kind, times in sorted(one.times.items()):
        yield [
            plain(one.label, _CELL),
            plain(kind, _CELL),
            count(times.count),
            *(percentile_words(times, key) for key in _PERCENTILES),
            duration(times.max),
        ]


def _trials(one: SealedWorkload) -> CertificateTable:
    assert one.search is not None
    return CertificateTable(
        title=f"Trials of {plain(one.label, _CELL)}",
        headings=("level", "verdict", "ok/s", "times", "detail"),
        rows=[
            [
                load_words(one.search, trial.rate),
                "sustained" if trial.held else (trial.cause or "not sustained"),
                three_digits(trial.ok_per_s),
                ", ".join(percentile_texts(trial)) or "-",
                plain(trial.detail, _CELL),
            ]
            for trial in one.search.trials
        ],
    )


def _surroundings(statement: SealedStatement) -> Iterator[CertificateTable]:
    evidence = statement.evidence
    yield CertificateTable(
        title="Hosts of the load generator, as their workers reported",
        headings=("host", "processes", "cores", "CPU used", "osbench", "Python"),
        rows=[
            [
                plain(one.host, _CELL),
                count(one.processes),
                "-" if one.cores is None else count(one.cores),
                f"{three_digits(one.cpu_mean)} cores",
                plain(", ".join(one.osbench), _CELL),
                plain(", ".join(one.python), _CELL),
            ]
            for one in evidence.hosts
        ],
    )
    yield CertificateTable(
        title="Files of the run",
        headings=("file", "size", "SHA-256"),
        rows=[
            [plain(name, _CELL), size(file.bytes), plain(file.sha256, _CELL)]
            for name, file in sorted(evidence.files.items())
        ],
    )
    yield CertificateTable(
        title="Run and seal", headings=("fact", "value"), rows=list(_facts(statement, evidence))
    )


def _facts(statement: SealedStatement, evidence: RunEvidence) -> Iterator[list[str]]:
    seal = statement.seal
    facts = {
        "run": evidence.run_id,
        "started": evidence.started_at or "",
        "finished": evidence.finished_at or "",
        "exit code": f"{evidence.exit_code}: {evidence.exit_meaning}",
        "osbench of the run": evidence.osbench,
        "deployment": evidence.deployment or "none",
        "targets": ", ".join(dict.fromkeys(t for one in evidence.workloads for t in one.targets)),
        "tags": ", ".join(evidence.tags),
        "fingerprint of the task": evidence.fingerprint,
        "task file": f"{seal.task_file} {seal.task_sha256}".strip(),
        "scenarios at the sealing": ", ".join(
            f"{name} {digest or 'not found'}" for name, digest in sorted(seal.scenarios.items())
        ),
        "sealed": seal.sealed_at,
        "sealed by": f"osbench {seal.osbench}, Python {seal.python}, {seal.system}, {seal.machine}",
        "OSProfiler there": seal.osprofiler,
        "public key": seal.public_key,
    }
    for name, value in facts.items():
        if value:
            yield [name, plain(value, 2000)]
