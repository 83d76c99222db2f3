"""Parses requests to change the load of a run: JSON objects with one change."""

from __future__ import annotations

import json
import math
from typing import Any

from osbench.common.errors import UsageError

_CHANGES = ("rate", "users", "pause", "resume_load")
_FORM = (
    'write {"workload": N, ...} with one of "rate": ARRIVALS_PER_SECOND, "users": N, "pause": true,'
    ' "resume_load": true'
)


def parse_change(body: bytes) -> dict[str, Any]:
    """Parse the JSON body of a request; return the change as `control_requests.ask` takes it.

    A dict with `workload`, a string or None (not given: the only workload), and a single key of
    `_CHANGES`. Raises UsageError if the body is not a JSON object, has no change, several or other
    keys, or an invalid value.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        raise UsageError(f"the request is not JSON: {_FORM}") from None
    if not isinstance(request, dict):
        raise UsageError(f"the request is not an object: {_FORM}")
    workload = request.pop("workload", None)
    changes = [name for name in _CHANGES if name in request]
    if len(changes) != 1 or len(request) != 1:
        raise UsageError(f"the request must ask for exactly one change: {_FORM}")
    (name,) = changes
    if not _fits(name, request[name]) or not (workload is None or isinstance(workload, int | str)):
        raise UsageError(f"{name} has an impossible value: {_FORM}")
    return {"workload": None if workload is None else str(workload), name: request[name]}


def _fits(name: str, value: Any) -> bool:
    if name in ("pause", "resume_load"):
        return value is True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and math.isfinite(value) and (name == "rate" or isinstance(value, int))
