"""What can go wrong with a request to a service, in one line each."""

from __future__ import annotations

import re
from typing import Any

#: Characters of a service's own explanation that are kept.
MAX_MESSAGE_CHARS = 300

# ids and names of single objects, which would keep like failures apart
_SINGLE = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32,64}\b|osb-[\w.-]+", re.IGNORECASE
)


class RequestFailed(Exception):
    """A service answered, but not as was expected."""

    def __init__(self, text: str, *, status: int, request_id: str = "") -> None:
        sample = f" (for example request {request_id})" if request_id else ""
        super().__init__(f"{text}{sample}")
        self.status = status
        #: The same for like failures: no id of a request or an object.
        self.kind = _SINGLE.sub("*", text)


class NotReady(Exception):
    """What was accepted did not become ready: it failed, or took too long."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.kind = _SINGLE.sub("*", text)


def explanation(document: Any) -> str:
    """What a service says in the body of an error; each says it in another way."""
    if isinstance(document, str):
        return " ".join(document.split())[:MAX_MESSAGE_CHARS]
    if isinstance(document, list):
        return explanation(document[0]) if document else ""
    if not isinstance(document, dict):
        return ""
    for key in ("message", "detail", "faultstring", "description", "title"):
        if isinstance(document.get(key), str):
            return explanation(document[key])
    return next((said for said in map(explanation, document.values()) if said), "")
