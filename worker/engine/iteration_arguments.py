"""The arguments of one iteration: the workload's, with {iteration} and {run} filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ITERATION = "{iteration}"
RUN = "{run}"

#: Makes a value for an iteration number, given as text.
Fill = Callable[[str], Any]


def expander(args: Mapping[str, Any], run_id: str) -> Callable[[int], dict[str, Any]]:
    """Return a function that returns the scenario's keyword arguments for an iteration number.

    In strings, also within lists, tuples and mappings, {iteration} and {run} are replaced; other
    braces and keys of mappings are unchanged. Tuples become lists. Parts without {iteration} are
    the same objects for all iterations, so a scenario must not change its arguments.
    """
    ready: dict[str, Any] = _with_run(dict(args), run_id)
    fill = _fill(ready)
    if fill is None:
        return lambda iteration: ready
    return lambda iteration: fill(str(iteration))


def _with_run(value: Any, run_id: str) -> Any:
    if isinstance(value, str):
        return value.replace(RUN, run_id)
    if isinstance(value, Mapping):
        return {key: _with_run(item, run_id) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_run(item, run_id) for item in value]
    return value


def _fill(value: Any) -> Fill | None:
    """Return a function that fills {iteration} into `value`; None if it contains none."""
    if isinstance(value, str):
        return (lambda number: value.replace(ITERATION, number)) if ITERATION in value else None
    if isinstance(value, dict):
        named = {key: fill for key, item in value.items() if (fill := _fill(item))}
        if named:
            return lambda number: value | {key: fill(number) for key, fill in named.items()}
    if isinstance(value, list):
        fills = [_fill(item) for item in value]
        if any(fills):
            pairs = list(zip(fills, value, strict=True))
            return lambda number: [fill(number) if fill else item for fill, item in pairs]
    return None
