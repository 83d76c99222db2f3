"""Runs of a task at several populations, made of functions of the population."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from osbench.edges.growth.request_figures import MeasuredRun, MedianFigure, RequestFigures
from osbench.edges.growth.traced_counts import RequestKey

#: A measure at a population; its name as in `RequestFigures`.
Laws = Mapping[str, Callable[[int], float]]


def grown_run(population: int, requests: Mapping[RequestKey, Laws], **more: Any) -> MeasuredRun:
    """A run at a population; `kinds` is the number of its only kind of spans."""
    fields: dict[str, Any] = {
        "population": population,
        "run_id": f"run-{population}",
        "exit_code": 0,
        "limited": False,
        "workloads": ("Shop",),
        "ok": 30,
        "bad": 0,
        "counted": 30,
        "traced": 30,
        "has_spans": any("spans" in laws for laws in requests.values()),
    }
    found = {key: _figures(population, laws) for key, laws in requests.items()}
    return MeasuredRun(requests=found, **(fields | more))


def grown_runs(
    populations: Iterable[int], requests: Mapping[RequestKey, Laws], **more: Any
) -> list[MeasuredRun]:
    """Runs at populations, ascending."""
    return [grown_run(one, requests, **more) for one in populations]


def _figures(population: int, laws: Laws) -> RequestFigures:
    values: dict[str, Any] = {}
    for name, law in laws.items():
        value = law(population)
        if name == "kinds":
            values[name] = {"db SELECT id FROM tags WHERE port = ?": value}
            continue
        width = 0.02 * value if name == "time" else 0.0
        values[name] = MedianFigure(value=value, low=value - width, high=value + width)
    return RequestFigures(**values)
