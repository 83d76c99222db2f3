"""Logs users in to Keystone; the threads of a process share a user's token."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import exceptions, identity

from osbench.common.deployment.credential import Credential
from osbench.common.secrets.masking import error_text
from osbench.edges.openstack.common.login_gate import LoginGate

LOG = logging.getLogger(__name__)

#: Tokens are renewed so long before they end, seconds; at the latest after this part of their life.
_BEFORE_END_S, _PART_OF_LIFE = 120.0, 0.75

#: Seconds before its end from which a token is not sent any more.
_SPARE_S = 1


class _Shared:
    """Mixin for keystoneauth1's auth plug-ins, by which all threads of a process share one token.

    Threads whose token was refused request one new token together.
    """

    auth_ref: Any
    reauthenticate: bool
    #: Name of a plug-in that cannot repeat its login; "" for all others.
    once = ""
    #: A login that cannot be repeated has had its token.
    _ended = False
    #: Time from which a token is renewed, and the token: reading its end costs as much as sending.
    _renewal = datetime.min.replace(tzinfo=UTC)
    _renewal_of: Any = None

    def share(self, gate: LoginGate) -> None:
        """Create the locks and set the gate; must be called before the plug-in is used."""
        self._gate = gate
        self._handed = threading.local()
        # keystoneauth1 reads its token once more after it has left its own lock
        self._reading = threading.RLock()

    def get_access(self, session: Any, **options: Any) -> Any:
        """Return the token and its data; logs in if there is none, or a renewable one ends soon.

        If that fails while the token is valid, logs a warning and returns the old token. Raises
        exceptions of keystoneauth1. `session` must have no auth plug-in: else keystoneauth1, after
        a 401 in discovery, would call this method again and deadlock.
        """
        # threads that wait for the one that logs in share its failure
        self._handed.failures = self._gate.failures
        try:
            with self._reading:
                return super().get_access(session, **options)  # type: ignore[misc]
        except exceptions.MissingAuthPlugin:
            raise exceptions.DiscoveryFailure(
                "responds with 401 where Keystone lists its versions; check auth_url"
            ) from None
        except exceptions.ClientException as error:
            granted = self.auth_ref
            if granted is None or self.is_over():
                raise
            # a renewal before its end: the token is good meanwhile, and renewed later
            now = datetime.now(UTC)
            left_s = (granted.expires - now).total_seconds()
            self._renewal, self._renewal_of = now + timedelta(seconds=left_s / 2), granted
            LOG.warning(
                "a token could not be renewed, and is used for the %.0f s that are left of it: %s",
                left_s,
                error_text(error),
            )
            return granted

    def get_auth_ref(self, session: Any, **options: Any) -> Any:
        """Request a new token through the gate, which may pause, and return it.

        Raises exceptions of keystoneauth1; AuthorizationFailure if the plug-in cannot log in again
        and its token has ended or was refused, or if the response is not Keystone's.
        """
        if self.once and self._ended:
            raise exceptions.AuthorizationFailure(
                f"its token has ended or was refused, and {self.once} cannot log in again; get "
                "another, or give a password"
            )
        log_in = super().get_auth_ref  # type: ignore[misc]
        seen = getattr(self._handed, "failures", None)
        return self._gate.through(lambda: _log_in(log_in, session, **options), seen)

    def _needs_reauthenticate(self) -> bool:
        """Return whether the token is missing, or ends within a margin that depends on its life.

        False if it cannot be renewed: then it is used to its end. keystoneauth1's fixed 120 s would
        renew short-lived tokens at each request.
        """
        if not self.auth_ref:
            return True
        if self.once or not self.reauthenticate:
            # no other token is to be had: this one is used to its end
            return False
        if self._renewal_of is not self.auth_ref:
            self._renewal, self._renewal_of = _renewal_time(self.auth_ref), self.auth_ref
        return datetime.now(UTC) > self._renewal

    def get_token(self, session: Any, **options: Any) -> str | None:
        """Return the token's id, and store it as the one this thread uses, for `invalidate`."""
        token: str | None = super().get_token(session, **options)  # type: ignore[misc]
        self._handed.token = token
        return token

    def is_over(self) -> bool:
        """Return whether there is no token, or it expires within a second."""
        granted = self.auth_ref
        return granted is None or bool(granted.will_expire_soon(_SPARE_S))

    def renewed(self, session: Any, refused: str) -> Any:
        """Return the token and its data, valid and other than `refused`; logs in only if necessary.

        `refused` is "" if no token was refused. Raises exceptions of keystoneauth1.
        """
        with self._reading:
            current = self.auth_ref
            if current is None or current.auth_token == refused or self.is_over():
                self._ended = self._ended or current is not None
                super().invalidate()  # type: ignore[misc]
                return self.get_access(session)
            return current

    def invalidate(self) -> bool:
        """Drop the token, unless it is newer than this thread's last; return whether to try again.

        keystoneauth1 calls it after a 401. A newer token, which another thread has requested,
        stays, and True is returned.
        """
        refused = getattr(self._handed, "token", None)
        with self._reading:
            current = self.auth_ref
            if refused is not None and (current is None or current.auth_token != refused):
                return True
            self._ended = self._ended or current is not None
            return bool(super().invalidate())  # type: ignore[misc]


def _log_in(log_in: Callable[..., Any], session: Any, **options: Any) -> Any:
    try:
        found = log_in(session, **options)
        # keystoneauth1 reads them when they are needed
        if found is not None:
            found.will_expire_soon(0)
            found.has_service_catalog()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise exceptions.AuthorizationFailure(
            f"the response is not a token of Keystone: {type(error).__name__} {error}; check "
            "auth_url"
        ) from None
    return found


def _renewal_time(token: Any) -> datetime:
    """Return the time of a token's renewal: 120 s before its end if its life is not known."""
    if token.expires is None:
        return datetime.max.replace(tzinfo=UTC)
    margin_s = _BEFORE_END_S
    # a token of Keystone v2 need not say when it was issued
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        life_s = (token.expires - token.issued).total_seconds()
        margin_s = min(_BEFORE_END_S, max(0.0, life_s * (1 - _PART_OF_LIFE)))
    found: datetime = token.expires - timedelta(seconds=margin_s)
    return found


class _PasswordV3(_Shared, identity.V3Password):
    pass


class _Password(_Shared, identity.Password):
    pass


@functools.lru_cache(maxsize=64)
def _shared_class(kind: type[Any]) -> type[Any]:
    return type(f"Shared{kind.__name__}", (_Shared, kind), {})


#: An authentication plugin of keystoneauth1.
Login = Any


def is_v3(auth_url: str) -> bool:
    """Return whether the path of a Keystone URL ends in /v3, so that discovery is not needed."""
    return urlsplit(auth_url).path.rstrip("/").endswith("/v3")


def login(credential: Credential, gate: LoginGate | None = None) -> Login:
    """Return an auth plug-in of keystoneauth1 for the credential; sends no request.

    It logs in when a token is first needed, unless the credential has one. `gate` is shared by the
    accounts of a process; None creates one. Raises DeploymentError as `load_plugin` does.
    """
    made: Any
    if not credential.auth_type:
        password = _PasswordV3 if is_v3(credential.auth_url) else _Password
        made = password(**credential.password_options())
    else:
        # its loaders are slow to import, and a password needs none
        from osbench.edges.openstack.common.login_plugins import is_once, load_plugin  # noqa: PLC0415

        made = load_plugin(credential.auth_type, credential.plugin_options())
        kind: Any = type(made)
        made.__class__ = _shared_class(kind)
        if is_once(credential.auth_type, credential.auth):
            made.once = credential.auth_type
    made.share(gate or LoginGate())
    if credential.state:
        made.set_auth_state(credential.state)
    return made


def state_of(found: Login, credential: Credential) -> str:
    """Return the token of an auth plug-in as JSON, for another process; "{}" without one. A secret.

    Its catalogue is reduced to endpoints of the credential's interface and region.
    """
    state = json.loads(found.get_auth_state() or "{}")
    for service in state.get("body", {}).get("token", {}).get("catalog", ()):
        service["endpoints"] = [
            endpoint
            for endpoint in service["endpoints"]
            if endpoint["interface"] == credential.endpoint_type
            and credential.region_name in (None, endpoint.get("region"))
        ]
    return json.dumps(state, separators=(",", ":"))
