"""Judges the criteria `growth` of a task by the measured growth of its requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.task import Task
from osbench.coordinator.formatting import plain
from osbench.edges.growth.growth_limits import LIMITED, GrowthLimits, elements
from osbench.edges.growth.growth_result import TIME, GrowthResult, Measure, RequestGrowth, rank
from osbench.edges.growth.growth_sentences import unclear_sentence
from osbench.edges.growth.laws import FEWEST, GrowthFit, Law

#: Characters of the name of a request.
_NAME = 80


@dataclass(frozen=True, kw_only=True)
class GrowthVerdict:
    """The verdict on one measure of a workload, or why there is none."""

    workload: str
    #: None if there is no verdict: the load generator left too few populations with times, or
    #: counts differ too much between iterations.
    success: bool | None
    detail: str

    @property
    def sentence(self) -> str:
        """The verdict as a line: workload and detail."""
        return f"{plain(self.workload)} growth: {self.detail}"


def growth_verdicts(task: Task, result: GrowthResult) -> list[GrowthVerdict]:
    """Return the verdicts of all criteria `growth` of a task, in its order."""
    found: list[GrowthVerdict] = []
    for number, workload in enumerate(task.workloads):
        for criterion in workload.sla:
            if criterion.name != GrowthLimits.NAME:
                continue
            for element in elements(criterion.config):
                found += _element_verdicts(number, workload.name, element, result)
    return found


def _element_verdicts(
    number: int, workload: str, element: Mapping[str, Any], result: GrowthResult
) -> Iterator[GrowthVerdict]:
    """Yield a verdict for each measure that an element of a criterion limits."""
    action = element.get("action")
    requests = [
        one
        for one in result.requests
        if one.key.workload == number and action in (None, one.key.action)
    ]
    for name in LIMITED:
        if name not in element:
            continue
        if name == TIME and not result.times_judged:
            detail = "time: no verdict, the load generator was the limit"
            yield GrowthVerdict(workload=workload, success=None, detail=detail)
            continue
        success, detail = _verdict(name, element[name], requests)
        yield GrowthVerdict(workload=workload, success=success, detail=f"{name}: {detail}")


def _verdict(
    name: str, limit: Mapping[str, Any], requests: Sequence[RequestGrowth]
) -> tuple[bool | None, str]:
    known = [
        (one, one.measures[name])
        for one in requests
        if name in one.measures and len(one.measures[name].points) > 1
    ]
    if not known:
        return False, "not measured at two populations, so that it cannot be judged"
    broken = [
        f"{plain(one.name, _NAME)} {problem}"
        for one, measure in known
        if (problem := _problem(name, limit, measure))
    ]
    if broken:
        return False, "; ".join(broken)
    if unclear := next((one for one, measure in known if measure.fit.law is Law.UNCLEAR), None):
        return None, unclear_sentence(unclear, name)
    if any(_is_undecided(limit, measure.fit) for _, measure in known):
        return None, f"no verdict on a law, which takes {FEWEST} populations"
    exponents = [measure.fit.exponent for _, measure in known]
    highest = max(one.value for one in exponents if one is not None)
    return True, f"exponent at most {highest + 0.0:.2f}, allowed {_limit_text(limit)}"


def _problem(name: str, limit: Mapping[str, Any], measure: Measure) -> str:
    """Return why a measure breaks its limit; "" if it does not, or if that may be chance."""
    fit = measure.fit
    exponent = fit.exponent
    if exponent is not None and "exponent" in limit:
        greatest = limit["exponent"]["max"]
        # counts are exact; the exponent of times must be above the limit with certainty
        certain = exponent.low if name in (TIME, "bytes") else exponent.value
        if certain > greatest and fit.grows:
            return f"has exponent {exponent.value:.2f}, allowed {greatest:g}"
    if "law" in limit and _is_faster(fit, Law(limit["law"])):
        return f"is {fit.law.value}, allowed {limit['law']}"
    return ""


def _is_faster(fit: GrowthFit, allowed: Law) -> bool:
    if fit.law is Law.GROWS:
        # two populations only show that it is not constant
        return allowed is Law.CONSTANT
    return rank(fit) > rank(GrowthFit(law=allowed))


def _is_undecided(limit: Mapping[str, Any], fit: GrowthFit) -> bool:
    return "law" in limit and fit.law is Law.GROWS


def _limit_text(limit: Mapping[str, Any]) -> str:
    parts = []
    if "exponent" in limit:
        parts.append(f"{limit['exponent']['max']:g}")
    if "law" in limit:
        parts.append(str(limit["law"]))
    return " and ".join(parts)
