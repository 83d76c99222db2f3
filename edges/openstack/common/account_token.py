"""The token of an account as HTTP headers, for clients other than keystoneauth1."""

from __future__ import annotations

from collections.abc import Mapping

from osbench.edges.openstack.common.account import Account, SessionOf

_HEADER = "X-Auth-Token"


class AccountToken:
    """The token of one account, shared by the virtual users of a process. Thread-safe."""

    def __init__(self, account: Account, session: SessionOf) -> None:
        self._account, self._session = account, session

    def headers(self) -> Mapping[str, str]:
        """Return the token, even an expired one, as header X-Auth-Token; logs in without a token.

        Raises TimeoutError, ConnectionError, AuthenticationFailed.
        """
        # not Account.token, which renews a token two minutes before its end
        granted = self._account.login.auth_ref or self._account.token(self._session())
        return {_HEADER: str(granted.auth_token)}

    def is_over(self) -> bool:
        """Return whether there is no token, or it has expired or will within a second."""
        return bool(self._account.login.is_over())

    def renew(self, refused: Mapping[str, str]) -> None:
        """Request a new token, unless the present one is valid and not the token in `refused`.

        `refused`: the headers of a request that was refused. Raises the errors of `headers`.
        """
        self._account.renewed_token(self._session(), refused.get(_HEADER, ""))
