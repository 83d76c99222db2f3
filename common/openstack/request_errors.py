"""Errors of requests to a cloud as one-line messages, equal for similar failures."""

from __future__ import annotations

import re
from typing import Any

from keystoneauth1 import exceptions

from osbench.common.deployment.credential import Credential
from osbench.common.errors import KindError
from osbench.common.network.causes import root_cause

#: Longest part of a service's own explanation that is kept.
MAX_MESSAGE_CHARS = 300

# ids and names of single objects: similar failures would not be grouped
_SINGLE = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32,64}\b|osb-[\w.-]+", re.IGNORECASE
)


class RequestFailed(KindError):
    """A service sent an unexpected response; `status` is its HTTP status."""

    def __init__(self, text: str, *, status: int, request_id: str = "") -> None:
        sample = f" (for example request {request_id})" if request_id else ""
        super().__init__(f"{text}{sample}")
        self.status = status
        #: The message without ids of requests and objects, the same for similar failures.
        self.kind = _SINGLE.sub("*", text)


class NotReady(KindError):
    """An accepted resource did not become ready: it failed, or took too long."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.kind = _SINGLE.sub("*", text)


def explanation(document: Any) -> str:
    """Return the message in the body of an error response, at most 300 characters; "" if none.

    Finds it in strings, lists and nested objects, since each service has its own format.
    """
    if isinstance(document, str):
        return " ".join(document.split())[:MAX_MESSAGE_CHARS]
    if isinstance(document, list):
        return explanation(document[0]) if document else ""
    if not isinstance(document, dict):
        return ""
    for key in ("message", "detail", "faultstring", "description", "title"):
        if isinstance(document.get(key), str):
            return explanation(document[key])
    return next((text for text in map(explanation, document.values()) if text), "")


# different each time; similar failures would not be grouped
_REQUEST_ID = re.compile(r" \(Request-ID: [^)]*\)")


class AuthenticationFailed(Exception):
    """Keystone responded, but gave no token; `status` is 0 if that was not an HTTP error."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def unreachable(place: str, error: Exception) -> Exception:
    """Return the exception for a request without a response; its message begins with `place`.

    It is a TimeoutError if the request timed out, else a ConnectionError.
    """
    if isinstance(error, exceptions.ConnectTimeout):
        return TimeoutError(f"{place}: {root_cause(error)}")
    return ConnectionError(f"{place}: {root_cause(error)}")


def refusal(credential: Credential, error: Exception) -> Exception:
    """Return the exception for a failed login: a network error, or AuthenticationFailed."""
    if isinstance(error, exceptions.ConnectionError):
        return unreachable(credential.auth_url, error)
    reason, status = root_cause(error), 0
    if isinstance(error, exceptions.HttpError):
        reason, status = _REQUEST_ID.sub("", str(error)), int(error.http_status)
    return AuthenticationFailed(
        f"{credential.auth_url} gave no token to {credential}: {reason}", status
    )
