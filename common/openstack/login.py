"""A user's token, shared by the threads of a process."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import exceptions, identity

from osbench.common.deployment.record import Credential

#: Seconds before its end from which a token is not sent any more.
_SPARE_S = 1


class _Shared:
    """Requests one new token, however many threads were rejected with the old one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._handed = threading.local()
        # keystoneauth1 reads its token once more after it has left its own lock
        self._reading = threading.RLock()

    def get_access(self, session: Any, **options: Any) -> Any:
        """The token and what Keystone says of it. Raises exceptions of keystoneauth1.

        `session` has no plugin of its own: where the address answers 401 to who asks for its
        versions, keystoneauth1 asks once more with a token, and would wait for itself here.
        """
        try:
            with self._reading:
                return super().get_access(session, **options)  # type: ignore[misc]
        except exceptions.MissingAuthPlugin:
            raise exceptions.DiscoveryFailure(
                "responds with 401 where Keystone lists its versions; is auth_url right?"
            ) from None

    def get_token(self, session: Any, **options: Any) -> str | None:
        """The token for a request of this thread."""
        token: str | None = super().get_token(session, **options)  # type: ignore[misc]
        self._handed.token = token
        return token

    def is_over(self) -> bool:
        """Whether there is no token, or one that has expired."""
        granted = self.auth_ref  # type: ignore[attr-defined]
        return granted is None or bool(granted.will_expire_soon(_SPARE_S))

    def renewed(self, session: Any, refused: str) -> Any:
        """A token that is good and is not the one that was refused; "" for none.

        Raises exceptions of keystoneauth1.
        """
        with self._reading:
            current = self.auth_ref  # type: ignore[attr-defined]
            if current is None or current.auth_token == refused or self.is_over():
                super().invalidate()  # type: ignore[misc]
                return self.get_access(session)
            return current

    def invalidate(self) -> bool:
        """Forget the token with which this thread was rejected, unless there is a newer one."""
        refused = getattr(self._handed, "token", None)
        with self._reading:
            current = self.auth_ref  # type: ignore[attr-defined]
            if refused is not None and (current is None or current.auth_token != refused):
                return True
            return bool(super().invalidate())  # type: ignore[misc]


class _PasswordV3(_Shared, identity.V3Password):
    pass


class _Password(_Shared, identity.Password):
    pass


#: An authentication plugin of keystoneauth1.
Login = Any


def is_v3(auth_url: str) -> bool:
    """Whether the URL names version 3, so that Keystone need not be asked for its versions."""
    return urlsplit(auth_url).path.rstrip("/").endswith("/v3")


def login(credential: Credential) -> Login:
    """A plugin that authenticates with a password when a token is first needed."""
    kind = _PasswordV3 if is_v3(credential.auth_url) else _Password
    return kind(**credential.password_options())


def state_of(found: Login, credential: Credential) -> str:
    """The serialized token of a plugin, for another process: a secret.

    Its catalogue is reduced to the credential's interface and region.
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
