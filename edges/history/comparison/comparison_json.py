"""Converts comparisons, trends and staircases of runs to JSON objects, for `--json` and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from osbench.edges.history.comparison.comparison_result import ComparisonResult
from osbench.edges.history.comparison.load_series import RunsStaircase
from osbench.edges.history.comparison.trend_check import TrendCheck
from osbench.edges.history.comparison.trends import RunsTrend

#: Version of these formats.
FORMAT = 1


def comparison_json(result: ComparisonResult) -> dict[str, Any]:
    """Return the JSON object of a comparison: the fields of `ComparisonResult` and `format`."""
    return {"format": FORMAT, **asdict(result)}


def trends_json(trends: Sequence[RunsTrend], checks: Sequence[TrendCheck] = ()) -> dict[str, Any]:
    """Return the JSON object of trends: `format`, `trends` and, if there are any, `checks`."""
    found = []
    for trend in trends:
        document = asdict(trend)
        for series, one in zip(document["series"], trend.series, strict=True):
            for written, change in zip(series["changes"], one.changes, strict=True):
                written["ratio"] = change.ratio
        found.append(document)
    document = {"format": FORMAT, "trends": found}
    return document | ({"checks": [asdict(one) for one in checks]} if checks else {})


def staircases_json(found: Sequence[RunsStaircase]) -> dict[str, Any]:
    """Return the JSON object of staircases of several runs: `format` and `staircases`."""
    return {"format": FORMAT, "staircases": [asdict(one) for one in found]}
