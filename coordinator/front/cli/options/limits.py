"""SLA criteria from the option `--limit`: `p95=250ms`, `failures=1%`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from osbench.common.config.durations import WANTED, seconds
from osbench.common.errors import UsageError

_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)", re.ASCII)
_PLAIN_NUMBER = re.compile(r"[0-9.]+", re.ASCII)
_FORMS = "p95=250ms (any percentile), mean=80ms, max=2s or failures=1%"


def sla_of(limits: Sequence[str], of: str) -> dict[str, Any]:
    """Return the key `sla` of a workload for limits such as "p95=250ms"; {} without limits.

    With limits, no iteration may fail unless `failures` allows it. `of`: the time that percentiles
    are of, "service" or "response". Raises UsageError for an unknown or malformed limit, and if
    `mean` or `failures` is repeated.
    """
    percentiles: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    for text in limits:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--limit {text}: write {_FORMS}")
        if (p := _percentile(name)) is not None:
            percentiles.append({"p": p, "max_s": _duration(text, value), "of": of})
            continue
        config: Any
        if name == "mean":
            criterion, config = "max_avg_duration", _duration(text, value)
        elif name == "failures":
            criterion, config = "failure_rate", {"max": _percent(text, value)}
        else:
            raise UsageError(f"--limit {text}: unknown limit {name!r}; write {_FORMS}")
        if criterion in found:
            raise UsageError(f"--limit {text}: {name} has a limit already; leave one of them out")
        found[criterion] = config
    if limits and "failure_rate" not in found:
        # as without any limit: a limit more must not allow more
        found["failure_rate"] = {"max": 0}
    return {"percentile": percentiles, **found} if percentiles else found


def _percentile(name: str) -> float | None:
    """Return the percentile, above 0 to 100, of a name such as "p95" or "max"; else None."""
    if name == "max":
        return 100
    match = _PERCENTILE.fullmatch(name)
    if match is None or not 0 < float(match[1]) <= 100:
        return None
    return _plain(float(match[1]))


def _plain(number: float) -> float:
    """Return a float without a fraction as an integer, so that it is written as people do."""
    return int(number) if number.is_integer() else number


def _duration(text: str, value: str) -> float:
    if _PLAIN_NUMBER.fullmatch(value):
        raise UsageError(f"--limit {text}: say the unit, {value}ms or {value}s")
    try:
        found = seconds(value)
    except ValueError:
        raise UsageError(f"--limit {text}: {value!r} must be {WANTED}") from None
    if not 0 < found < math.inf:
        raise UsageError(f"--limit {text}: give a time above 0, as in p95=300ms")
    return found


def _percent(text: str, value: str) -> float:
    try:
        found = float(value.removesuffix("%"))
    except ValueError:
        found = math.nan
    if not 0 <= found <= 100:
        raise UsageError(f"--limit {text}: expected a percentage such as 1%, got {value!r}")
    return _plain(found)
