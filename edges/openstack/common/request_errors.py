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
    """Raised for a response with an unexpected status, which `status` holds, or without JSON.

    The message ends with the request's id, if the service gave one.
    """

    def __init__(self, text: str, *, status: int, request_id: str = "") -> None:
        sample = f" (for example request {request_id})" if request_id else ""
        super().__init__(f"{text}{sample}")
        self.status = status
        #: The message without ids of requests and objects, the same for similar failures.
        self.kind = _SINGLE.sub("*", text)


class NotReady(KindError):
    """Raised if a resource that a service accepted fails, or takes too long to become ready."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.kind = _SINGLE.sub("*", text)


def explanation(document: Any) -> str:
    """Return the error message in a response's parsed JSON, at most 300 characters; "" if none.

    Searches strings, first items of lists, and nested objects: each service has its own format.
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
    """Raised if Keystone responded but gave no token; `status`: its HTTP status, 0 if unknown."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def unreachable(place: str, error: Exception) -> Exception:
    """Return the exception to raise for a request without a response; does not raise it.

    A TimeoutError if the request timed out, else a ConnectionError. Its message: `place`, the
    request or address, and the root cause of `error`.
    """
    if isinstance(error, exceptions.ConnectTimeout):
        return TimeoutError(f"{place}: {root_cause(error)}")
    return ConnectionError(f"{place}: {root_cause(error)}")


def refusal(credential: Credential, error: Exception) -> Exception:
    """Return the exception to raise for a failed login; does not raise it.

    A TimeoutError or ConnectionError if Keystone did not respond, else AuthenticationFailed.
    """
    if isinstance(error, exceptions.ConnectionError):
        return unreachable(credential.auth_url, error)
    reason, status = root_cause(error), 0
    if isinstance(error, exceptions.HttpError):
        reason, status = _REQUEST_ID.sub("", str(error)), int(error.http_status)
    return AuthenticationFailed(
        f"{credential.auth_url} gave no token to {credential}: {reason}", status
    )
