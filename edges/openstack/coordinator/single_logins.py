"""Logins that cannot be repeated: done once for a run, so that all share their tokens."""

from __future__ import annotations

from datetime import UTC, datetime

from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.plugin.cloud_platform import SingleLogins
from osbench.coordinator.formatting import spaced
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.login import state_of
from osbench.edges.openstack.common.login_plugins import is_once
from osbench.edges.openstack.common.request_errors import AuthenticationFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions

#: Timeout of each request, seconds.
_REQUEST_S = 30.0


def single_logins(deployment: Deployment, lasts_s: float | None) -> SingleLogins:
    """Log in with each credential that can log in once only, such as a token or one-time code.

    Returns the deployment with the tokens, which coordinator and workers share, and a note on each.
    `lasts_s`: planned duration of the load, None if unknown; the note is a warning if the token
    ends before. Raises DeploymentError if a login fails.
    """
    states, notes = {}, []
    for place, credential in deployment.credentials.items():
        if not is_once(credential.auth_type, credential.auth):
            continue
        account = Account(credential)
        try:
            granted = account.token(ThreadSessions(credential, _REQUEST_S)())
        except (AuthenticationFailed, OSError) as error:
            raise DeploymentError(
                f"deployment {deployment.name}, {place}: {error}; check it with `osbench-coord "
                f"deployment check {deployment.name}`"
            ) from None
        states[place] = state_of(account.login, credential)
        told = f"{place} logs in once, by {credential.auth_type}"
        notes.append(f"{told}: {token_end(granted.expires, lasts_s)}")
    return SingleLogins(deployment=deployment.with_states(states), notes=tuple(notes))


def token_end(ends_at: datetime | None, lasts_s: float | None = None) -> str:
    """Return a message on the end of a token that cannot be renewed; `ends_at` None: unknown.

    A warning if it ends before a load of `lasts_s` seconds that begins now; None: unknown.
    """
    if ends_at is None:
        return "its token cannot be renewed"
    left_s = (ends_at - datetime.now(UTC)).total_seconds()
    said = f"its token ends at {ends_at:%Y-%m-%d %H:%M:%S} UTC, in {spaced(max(0.0, left_s))}"
    if lasts_s is not None and lasts_s > left_s:
        return f"warning: {said}; the load takes {spaced(lasts_s)}, and fails from then on"
    return said
