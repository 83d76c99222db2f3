"""Reads bodies of requests, and makes responses with pages, for the web server."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from osbench.common.errors import UsageError
from osbench.coordinator.front.web import web_pages

#: Largest request, bytes.
MOST_BYTES = 4096


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
    """Return a response with the HTML page `text`; `status`: HTTP status, `policy`:
    Content-Security-Policy.
    """
    return HTMLResponse(text, status, {"Content-Security-Policy": policy})
