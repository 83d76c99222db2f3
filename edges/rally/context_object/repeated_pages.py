"""Ends the lists of OpenStack's clients if a service does not know the marker of the next page.

Such a service gives the same page for ever, and clients such as novaclient ask for the next one as
long as a page has objects.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit


@contextmanager
def ended_lists() -> Iterator[None]:
    """In this block, give clients an empty page if a page repeats their last response.

    In all threads of the process, for clients that use a session of keystoneauth1: a GET with a
    marker whose body equals the body of the thread's last GET. Does nothing without keystoneauth1.
    """
    try:
        session: Any = importlib.import_module("keystoneauth1.session").Session
    except ImportError:
        yield
        return
    request, last = session.request, threading.local()

    def watched(this: Any, url: str, method: str, *args: Any, **options: Any) -> Any:
        response = request(this, url, method, *args, **options)
        if method != "GET" or options.get("stream"):
            return response
        body = response.content
        params = {**parse_qs(urlsplit(response.request.url or url).query)}
        if "marker" in params and body == getattr(last, "body", None):
            _empty(response)
        last.body = body
        return response

    session.request = watched
    try:
        yield
    finally:
        session.request = request


def _empty(response: Any) -> None:
    """Replace the lists in the JSON object of a response by empty ones; no link to a next page."""
    try:
        document = response.json()
    except ValueError:
        return
    if isinstance(document, dict):
        kept = {key: value for key, value in document.items() if key != "next"}
        emptied = {key: [] if isinstance(value, list) else value for key, value in kept.items()}
        response._content = json.dumps(emptied).encode()
