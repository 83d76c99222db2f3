"""The growth of requests as a JSON object; docs/growth.md describes its keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from osbench.edges.growth.growth_result import GrowthResult, Measure, RequestGrowth
from osbench.edges.growth.growth_sentences import notes, short_answer
from osbench.edges.growth.growth_verdicts import GrowthVerdict

#: Version of the object.
FORMAT = 1


def growth_json(
    result: GrowthResult, verdicts: Sequence[GrowthVerdict], exit_code: int
) -> dict[str, Any]:
    """Return the growth of all requests, worst first, as a JSON object. Times are in seconds."""
    return {
        "format": FORMAT,
        "task": result.task,
        "exit_code": exit_code,
        "sentence": short_answer(result),
        "populations": list(result.populations),
        "item": result.item,
        "predict": result.predict,
        "limited": list(result.limited),
        "spread": {"value": result.spread, "measured": result.spread_measured},
        "requests": [_request(one) for one in result.requests],
        "criteria": [
            {"workload": one.workload, "success": one.success, "detail": one.detail}
            for one in verdicts
        ],
        "runs": [
            {
                "population": run.population,
                "run_id": run.run_id,
                "exit_code": run.exit_code,
                "limited": run.limited,
                "ok": run.ok,
                "bad": run.bad,
                "counted_traces": run.counted,
                "incomplete_traces": run.incomplete,
            }
            for run in result.runs
        ],
        "notes": list(notes(result)),
    }


def _request(one: RequestGrowth) -> dict[str, Any]:
    return {
        "workload": one.workload,
        "action": one.key.action,
        "call": one.key.call or one.only_call,
        "n_plus_one": one.is_n_plus_one,
        "returns_more": one.returns_more,
        "measures": {name: _measure(measure) for name, measure in one.measures.items()},
        "growing_spans": [
            {"name": kind.name, "law": kind.law, "each": kind.each} for kind in one.kinds
        ],
    }


def _measure(measure: Measure) -> dict[str, Any]:
    fit = measure.fit
    return {
        "points": [
            {
                "population": point.population,
                "value": point.value,
                "low": point.low,
                "high": point.high,
            }
            for point in measure.points
        ],
        "law": fit.law,
        "also": list(fit.also),
        "base": fit.base,
        "slope": fit.slope,
        "exponent": None if fit.exponent is None else asdict(fit.exponent),
        "predicted": None if fit.predicted is None else asdict(fit.predicted),
    }
