"""Timeouts of requests within an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Seconds that a request may continue after its iteration's timeout, so that the iteration is
#: counted as a timeout, not as a failure, and its thread is free soon after.
GRACE_S = 0.2


def request_limit_s(context: Mapping[str, Any], given: Any = None) -> Any:
    """Timeout of a request in seconds: `given`, but not more than the iteration's timeout.

    None where neither sets one. A value that is not a number, such as a pair, is kept.
    """
    limit_s = context.get("timeout_s")
    if limit_s and (given is None or (isinstance(given, int | float) and given > limit_s)):
        return limit_s + GRACE_S
    return given
