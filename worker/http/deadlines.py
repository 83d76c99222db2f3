"""How long a request of an iteration may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Seconds a request may go on past its iteration's timeout: the iteration is then a timeout in
#: the books, not a failure, and its thread is free soon after.
GRACE_S = 0.2


def request_limit_s(context: Mapping[str, Any], given: Any = None) -> Any:
    """Bound of a request in seconds: `given` or, where that is later, the iteration's timeout.

    None where neither sets one. What is no number, as a pair of bounds, stays as it is.
    """
    limit_s = context.get("timeout_s")
    if limit_s and (given is None or (isinstance(given, int | float) and given > limit_s)):
        return limit_s + GRACE_S
    return given
