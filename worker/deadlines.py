"""How long a request of an iteration may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Seconds a request may go on past its iteration's timeout: the iteration is then a timeout in
#: the books, not a failure, and its thread is free soon after.
GRACE_S = 0.2


def request_limit_s(context: Mapping[str, Any], given_s: float | None = None) -> float | None:
    """Bound of a request in seconds: `given_s` or, where that is later, the iteration's timeout.

    None where neither sets one.
    """
    limit_s = context.get("timeout_s")
    if limit_s and (given_s is None or given_s > limit_s):
        return float(limit_s) + GRACE_S
    return given_s
