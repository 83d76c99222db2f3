"""Notes on SLA criteria that a failing or slow service may meet all the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from osbench.common.config import options
from osbench.common.errors import Problem
from osbench.common.plugin.plugin_names import NATIVE, parse_name
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Runner, SearchingRunner
from osbench.common.plugin.sla import Sla
from osbench.common.task import Workload
from osbench.coordinator.formatting import count
from osbench.coordinator.task.taskfile.places import inside

#: Percentage of failures from which a limit allows nearly all.
NEARLY_ALL = 90


def weak_criteria(
    workload: Workload, runner: Runner, plugins: Plugins, silenced: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield a note for each criterion of a checked workload that is met too easily.

    Also if it has no criterion, or none that judges failures. `silenced`: notes of
    `options.CRITERIA_NOTES` to leave out.
    """
    for name, place, message in _findings(workload, runner, plugins):
        if name not in silenced:
            yield Problem(place, f"{message} (to silence: silenced_notes = {name})")


def _findings(
    workload: Workload, runner: Runner, plugins: Plugins
) -> Iterator[tuple[str, str, str]]:
    place = inside(workload.place, "sla")
    found = [(criterion, plugins.find("sla", criterion.name)) for criterion in workload.sla]
    native = [(criterion, plugin.cls) for criterion, plugin in found if plugin.source == NATIVE]
    criteria = {parse_name(criterion.name).bare: criterion.config for criterion, _ in native}
    if not workload.sla:
        message = "is empty: every run passes; add failure_rate: {max: 0}"
        yield options.NO_CRITERION, place, message
    elif len(native) == len(found) and not any(_judges_failures(cls) for _, cls in native):
        message = "judges no failures: add failure_rate: {max: 0}"
        yield options.FAILURES_UNJUDGED, place, message
    rate = criteria.get("failure_rate", {"max": 0})
    if rate.get("max", 100) >= NEARLY_ALL and not rate.get("min"):
        message = (
            f"allows {rate.get('max', 100):g} % of the iterations to fail: "
            "lower max, or give min if they are to fail"
        )
        yield options.FAILURES_ALLOWED, inside(place, "failure_rate"), message
    for limit in _percentiles(criteria.get("percentile", ())):
        here = inside(place, "percentile")
        is_response = limit.get("of") == "response"
        if is_response and not (runner.OPEN or isinstance(runner, SearchingRunner)):
            message = (
                f"p{limit['p']:g} of response time: users of a closed load wait while the service "
                "is slow, and no percentile has this wait; take an open runner, such as rps, or "
                "of: service"
            )
            yield options.CLOSED_RESPONSE, here, message
        needed, number = _least_size(limit["p"]), _sample_size(workload, runner, limit)
        if number is not None and number < needed and "action" not in limit:
            where = f" in {limit['over_s']:g} s" if "over_s" in limit else ""
            message = (
                f"p{limit['p']:g} of at most {count(math.ceil(number), 'iteration')}{where} is "
                f"the longest of them: make at least {needed}, or take a lower p"
            )
            yield options.FEW_ITERATIONS, here, message


def _percentiles(config: Any) -> Sequence[Mapping[str, Any]]:
    return [config] if isinstance(config, Mapping) else config


def _least_size(percent: float) -> int:
    """Return the least number of values of which one at least is above their percentile."""
    above = 100 - Fraction(str(percent))
    return math.ceil(100 / above) if above else 0  # 100 is the longest on purpose


def _sample_size(workload: Workload, runner: Runner, limit: Mapping[str, Any]) -> float | None:
    """Return the most iterations that a percentile is of; None if not known before the load."""
    number, lasts_s = runner.planned, runner.planned_s
    if isinstance(runner, SearchingRunner) or number is None:
        return None
    if not lasts_s:
        return None if "over_s" in limit else number
    judged_s = lasts_s - workload.warmup_s
    return number * min(float(limit.get("over_s", judged_s)), judged_s) / lasts_s


def _judges_failures(cls: type) -> bool:
    return issubclass(cls, Sla) and cls.JUDGES_FAILURES
