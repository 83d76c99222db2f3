"""SLA criterion `spans`: calls per iteration, and durations, of spans in traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import count, duration

_PERCENTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "service": {
            "type": "string",
            "minLength": 1,
            "description": "name of the service, or its first part; `*` matches any text;"
            " all services unless given",
        },
        "name": {
            "type": "string",
            "minLength": 1,
            "description": "name of the span, or name and detail; `*` matches any text",
        },
        "calls_per_iteration": {
            "type": "object",
            "properties": {
                "min": {"type": "integer", "minimum": 0, "description": "fewest"},
                "max": {"type": "integer", "minimum": 0, "description": "most"},
            },
            "minProperties": 1,
            "additionalProperties": False,
            "description": "calls of every traced iteration that succeeds",
        },
        **{
            name: {
                **DURATION,
                "exclusiveMinimum": 0,
                "description": f"limit of the {name} of its durations, seconds",
            }
            for name in _PERCENTS
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


class SpanLimits(sla.Sla):
    """Limits of spans, judged when the traces of the run have been read.

    Calls are counted in the complete traces of successful iterations. Without such a trace no limit
    is met.
    """

    NAME: ClassVar[str] = "spans"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [_LIMIT, {"type": "array", "items": _LIMIT, "minItems": 1}],
        "examples": [{"service": "shop", "name": "db*", "calls_per_iteration": {"max": 12}}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message for each limit that bounds nothing, and for each `min` above `max`."""
        found = []
        for limit in _limits(config):
            calls = limit.get("calls_per_iteration", {})
            if not calls and not _PERCENTS.keys() & limit.keys():
                found.append(
                    f"{limit['name']} has no limit: add calls_per_iteration: {{max: N}}, or one of"
                    f" {', '.join(_PERCENTS)}"
                )
            if calls.get("min", 0) > calls.get("max", calls.get("min", 0)):
                found.append(
                    f"calls_per_iteration of {limit['name']}: min {calls['min']} is above max"
                    f" {calls['max']}"
                )
        return found

    def selections(self) -> Sequence[sla.SpanSelection]:
        """Return the patterns of service and name of each limit, in the order of the limits."""
        return [
            sla.SpanSelection(service=limit.get("service", "*"), name=limit["name"])
            for limit in _limits(self.config)
        ]

    def check_spans(self, figures: Sequence[sla.SpanFigures]) -> sla.Verdict:
        """Return the verdict: whether calls and durations of spans are within the limits.

        `figures`: one for each element of `selections`, in order. Fails without a complete trace;
        with a limit on durations also if the span never occurred.
        """
        found = [
            one
            for limit, those in zip(_limits(self.config), figures, strict=True)
            for one in _verdicts(limit, those)
        ]
        bad = [text for fine, text in found if not fine]
        return self.verdict(not bad, "; ".join(bad or [text for _, text in found]))


def _limits(config: Any) -> Sequence[Mapping[str, Any]]:
    return [config] if isinstance(config, Mapping) else config


def _verdicts(limit: Mapping[str, Any], figures: sla.SpanFigures) -> Iterator[tuple[bool, str]]:
    name = " ".join(part for part in (limit.get("service"), limit["name"]) if part)
    if not figures.traces:
        yield False, f"{name}: {_without(figures)}"
        return
    if "calls_per_iteration" in limit:
        yield _calls_verdict(name, limit["calls_per_iteration"], figures)
    for key, percent in _PERCENTS.items():
        if key not in limit:
            continue
        if not figures.durations.count:
            yield False, f"{key} of {name}: in none of {figures.traces} traces"
            continue
        value = figures.durations.percentile(percent)
        yield (
            value <= round(limit[key] * 1e9),
            f"{key} of {name} {duration(value / 1e9)}, allowed {duration(limit[key])}",
        )


def _calls_verdict(
    name: str, limit: Mapping[str, int], figures: sla.SpanFigures
) -> tuple[bool, str]:
    most, fewest = max(figures.calls), min(figures.calls)
    least, greatest = limit.get("min", 0), limit.get("max", most)
    above = sum(traces for calls, traces in figures.calls.items() if calls > greatest)
    below = sum(traces for calls, traces in figures.calls.items() if calls < least)
    parts = []
    if above:
        parts.append(
            f"{name}: more than {count(greatest, 'call')} in {above} of {figures.traces} traced"
            f" iterations, {most} in iteration {figures.most}"
        )
    if below:
        parts.append(
            f"{name}: fewer than {count(least, 'call')} in {below} of {figures.traces} traced"
            f" iterations, {fewest} in iteration {figures.fewest}"
        )
    if not parts:
        calls = f"{fewest} to {most} calls" if fewest < most else count(most, "call")
        bounds = [f"at least {least}"] * ("min" in limit) + [f"at most {greatest}"] * (
            "max" in limit
        )
        parts = [f"{name}: {calls} per iteration, {' and '.join(bounds)}"]
    return not (above or below), "; ".join(parts)


def _without(found: sla.SpanFigures) -> str:
    if found.incomplete:
        return f"no trace is complete, of {found.incomplete} of successful iterations"
    return "no successful iteration has a trace"
