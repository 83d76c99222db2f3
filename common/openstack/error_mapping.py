"""Maps exceptions of keystoneauth1 to our own, with the same text for similar failures."""

from __future__ import annotations

import re

from keystoneauth1 import exceptions

from osbench.common.deployment.record import Credential
from osbench.common.network.causes import root_cause

# different each time; similar failures would not be grouped
_REQUEST_ID = re.compile(r" \(Request-ID: [^)]*\)")


class AuthenticationFailed(Exception):
    """Keystone responded, but not with a token; `status` is 0 where it is no HTTP error."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def unreachable(place: str, error: Exception) -> Exception:
    """A TimeoutError or ConnectionError for a request that got no response."""
    if isinstance(error, exceptions.ConnectTimeout):
        return TimeoutError(f"{place}: {root_cause(error)}")
    return ConnectionError(f"{place}: {root_cause(error)}")


def refusal(credential: Credential, error: Exception) -> Exception:
    """The exception for a failed authentication."""
    if isinstance(error, exceptions.ConnectionError):
        return unreachable(credential.auth_url, error)
    who = f"user {credential.username!r} of project {credential.project_name!r}"
    reason, status = root_cause(error), 0
    if isinstance(error, exceptions.HttpError):
        reason, status = _REQUEST_ID.sub("", str(error)), int(error.http_status)
    return AuthenticationFailed(f"{credential.auth_url} gave no token to {who}: {reason}", status)
