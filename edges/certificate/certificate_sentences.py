"""Words for a certificate: its headline, and the facts that a verification proves and does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from osbench.coordinator.formatting import count, duration, plain, spaced, three_digits
from osbench.coordinator.report.model.time_figures import TimeFigures
from osbench.coordinator.report.model.workload_parts import SearchReport
from osbench.coordinator.report.statements.search_statements import (
    search_headline,
    search_interval,
)
from osbench.edges.certificate.sealed_statement import RunEvidence, SealedWorkload
from osbench.edges.certificate.verification import Verified

#: Default of `[benchmark] lag_limit_s`, seconds.
_LIMIT_S = 0.1
#: Characters of a name in a sentence.
_NAME = 80


def headline(evidence: RunEvidence) -> str:
    """Return the result of the run as a message.

    It is of the first workload that missed a criterion, else of the first search, else of the first
    workload, and says how the others ended.
    """
    workloads = evidence.workloads
    missed = [one for one in workloads if not one.is_met]
    chosen = next(iter([*missed, *(one for one in workloads if one.search), *workloads]))
    sentence = workload_sentence(chosen)
    others = count(len(workloads) - 1, "more workload")
    if len(workloads) > 1 and missed:
        sentence += f"; {len(missed)} of {len(workloads)} workloads missed criteria"
    elif len(workloads) > 1:
        sentence += f"; {others} met all criteria"
    return f"{sentence[0].upper()}{sentence[1:]}."


def workload_sentence(workload: SealedWorkload) -> str:
    """Return capacity or load, limits, percentile and number of iterations of a workload."""
    search, sums = workload.search, workload.accounting
    limits = ", ".join(limit_words(workload))
    parts = []
    if search is not None:
        # advice on the task is for the operator
        result = search_interval(search) or search_headline(replace(search, advice=""))
        parts.append(f"{result} ({limits})" if limits else result)
        parts.append(count(len(search.trials), "trial"))
    else:
        parts.append(offered_words(workload))
        p95 = percentile_words(workload.main_times, "p95")
        parts.append(f"p95 of {workload.kind} time {p95}")
        parts += [f"{'within' if workload.is_met else 'not within'} {limits}"] if limits else []
    bad = sums.failed + sums.timed_out
    parts.append(count(sums.planned, "iteration"))
    parts += [f"{count(bad)} of them failed"] if bad else []
    parts += [f"{count(sums.dropped)} dropped"] if sums.dropped else []
    return f"{', '.join(parts)}, none lost"


def limit_words(workload: SealedWorkload) -> Iterator[str]:
    """Yield the limits of the task in short: "p95 ≤ 100 ms", "failure_rate ≤ 1"."""
    for criterion, limits in sorted(workload.limits.items()):
        for path, value in sorted(limits.items()):
            *place, key = path.split(".")
            in_seconds = key.endswith("_s")
            sign = {"max": "≤", "min": "≥"}.get(key.removesuffix("_s"))
            name = plain(" ".join(place) or criterion, _NAME)
            shown = spaced(value) if in_seconds else f"{value:g}"
            if sign:
                yield f"{name} {sign} {shown}"
            else:
                yield f"{plain(criterion, _NAME)} {plain(path, _NAME)} {shown}"


def offered_words(workload: SealedWorkload) -> str:
    """Return the offered load next to the requested one."""
    offered = workload.offered
    if offered.concurrency is not None:
        held = offered.concurrency_held
        busy = f", busy for {100 * held:.1f} % of the time" if held is not None else ""
        return f"{count(offered.concurrency, 'virtual user')}{busy}"
    planned, made = offered.rate_planned, offered.rate_offered
    if planned is None or made is None:
        return "an open load of too few arrivals for a rate"
    return f"{three_digits(made)}/s offered of {three_digits(planned)}/s requested"


def load_words(search: SearchReport, load: float) -> str:
    """Return a load of a search with its unit: "40.0/s", or "12 users"."""
    # searches of older reports are over rates
    if getattr(search, "unit", "") == "users":
        return count(round(load), "user")
    return f"{three_digits(load)}/s"


def percentile_words(times: TimeFigures, key: str) -> str:
    """Return a percentile with its interval: "48.1 ms (95 %: 45.0 to 52.3 ms)"; "-" without one."""
    value, bounds = times.percentile(key), times.ci.get(key)
    if value is None or not bounds or bounds[0] is None:
        return spaced(value)
    high = bounds[1] if len(bounds) > 1 else None
    if high is None:
        return f"{spaced(value)} (95 %: at least {spaced(bounds[0])})"
    return f"{spaced(value)} (95 %: {duration(bounds[0])} to {duration(high)})"


def proved_facts(verified: Verified) -> Iterator[str]:
    """Yield a message for each fact that the passed checks prove."""
    certificate = verified.certificate
    evidence = certificate.evidence
    holder = "the key that you gave" if verified.is_known_key else "this key"
    yield (
        f"The holder of {holder} ({certificate.key.fingerprint}) sealed this statement, and no byte"
        " of it was changed."
    )
    yield (
        "The ledger adds up: each planned iteration has one final state, none was lost, and none"
        " ran twice."
    )
    if verified.has_files:
        yield (
            f"The files are the sealed ones of run {plain(evidence.run_id, _NAME)}: all"
            f" {len(evidence.files)} are there, unchanged, and none was added."
        )
        yield (
            f"Journal and blocks, counted again ({count(evidence.blocks, 'block')},"
            f" {count(evidence.rows, 'row')}), give each sealed count, time, interval, verdict and"
            " capacity."
        )
        yield (
            "By osbench's rules the load generator was not the limit. The rules used a limit of"
            f" {spaced(evidence.lag_limit_s)} for late starts, and the use of processors that the"
            " workers reported."
        )
    if verified.has_task:
        yield "The task file has the sealed digest."


def unproved_facts(verified: Verified) -> Iterator[str]:
    """Yield a message for each fact that a reader might assume and that is not proved."""
    evidence, seal = verified.certificate.evidence, verified.certificate.seal
    if not verified.is_known_key:
        yield (
            "Who holds the key. Compare its fingerprint with the sealer by another way, or give the"
            " sealer's key by --public-key."
        )
    if not verified.has_files:
        yield "That the figures follow from the files of the run. Give the files by --run."
    yield (
        "That the sealer is honest. Whoever holds the key can seal files that no run has made, and"
        " clock, hosts and service are as the sealer had them."
    )
    yield (
        "That the service behaves so at another time, from another place, with other data or in"
        " another version. The deployment has only a name here."
    )
    yield "The use of processors by the load generator, which is as its workers reported it."
    if not seal.task_sha256:
        yield "The exact task file. The certificate has the task as it ran, with secrets masked."
    elif not verified.has_task:
        yield "The exact task file. Give it by --task to compare its SHA-256."
    yield from _weak_spots(evidence)


def _weak_spots(evidence: RunEvidence) -> Iterator[str]:
    """Yield a message for each property of the run by which its figures mean less."""
    if evidence.lag_limit_s > _LIMIT_S:
        yield (
            f"That starts were on time: they could be {spaced(evidence.lag_limit_s)} late before"
            f" the load generator counted as the limit. The usual limit is {spaced(_LIMIT_S)}."
        )
    reported = sorted(
        {
            plain(one.criterion, _NAME)
            for workload in evidence.workloads
            for one in workload.criteria
            if not one.judged_again
        }
    )
    if reported:
        yield f"Criteria that were only reported, since they are on spans: {', '.join(reported)}."
    if evidence.changes:
        yield (
            f"That the load was the task's alone: it was changed by hand"
            f" {count(evidence.changes, 'time')} under load."
        )
