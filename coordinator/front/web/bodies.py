"""Reads bodies of requests, parses changes of load in them, and makes responses with pages."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from osbench.common.errors import UsageError
from osbench.coordinator.front.web import web_pages

#: Largest request, bytes.
MOST_BYTES = 4096
_CHANGES = ("rate", "users", "pause", "resume_load")
_FORM = (
    'write {"workload": N, ...} with one of "rate": ARRIVALS_PER_SECOND, "users": N, "pause": true,'
    ' "resume_load": true'
)


async def bounded_body(request: Request) -> bytes:
    """Read and return the body of a request.

    Raises UsageError as soon as it has more than `MOST_BYTES` bytes.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise UsageError("the request is too long; send less")
    return body


def page_response(text: str, status: int = 200, policy: str = web_pages.POLICY) -> Response:
    """Return a response with the HTML page `text`, and `policy` as Content-Security-Policy."""
    return HTMLResponse(text, status, {"Content-Security-Policy": policy})


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
    named = isinstance(workload, int | str | None) and not isinstance(workload, bool)
    if not _fits(name, request[name]) or not named:
        raise UsageError(f"{name} has an impossible value: {_FORM}")
    return {"workload": None if workload is None else str(workload), name: request[name]}


def _fits(name: str, value: Any) -> bool:
    if name in ("pause", "resume_load"):
        return value is True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and math.isfinite(value) and (name == "rate" or isinstance(value, int))
