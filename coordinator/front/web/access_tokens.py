"""Tokens and cookies of the web server: who may see pages, and who may change and abort runs."""

from __future__ import annotations

import enum
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from osbench.common.errors import UsageError

#: Variables with the tokens; without the first one is generated.
TOKEN = "OSBENCH_WEB_TOKEN"  # noqa: S105 - a name
READ_TOKEN = "OSBENCH_WEB_READ_TOKEN"  # noqa: S105 - a name
#: Characters of a token that can stand in an address, and how many it needs.
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,}")


class Role(enum.Enum):
    """The rights of a token: READ sees runs and reports, ABORT also starts and changes runs."""

    READ = "read"
    ABORT = "abort"


@dataclass(frozen=True, kw_only=True)
class AccessTokens:
    """The tokens of a web server: the token with all rights, and a read-only token ("" if none)."""

    token: str
    read_token: str = ""

    @classmethod
    def from_environment(cls) -> AccessTokens:
        """Return the tokens of the environment, and remove them there: children inherit none.

        Without a variable for it, the token with all rights is random. Raises UsageError if a token
        is shorter than 16 characters, has characters that a URL would escape, or both are equal.
        """
        given = {name: os.environ.pop(name, "") for name in (TOKEN, READ_TOKEN)}
        for name, value in given.items():
            if value and _TOKEN.fullmatch(value) is None:
                raise UsageError(
                    f"{name} must have at least 16 characters out of A-Z, a-z, 0-9 and ._~-"
                )
        if given[TOKEN] and given[TOKEN] == given[READ_TOKEN]:
            raise UsageError(f"{TOKEN} and {READ_TOKEN} must be different")
        return cls(token=given[TOKEN] or secrets.token_urlsafe(24), read_token=given[READ_TOKEN])

    def role_of(self, token: str) -> Role | None:
        """Return the role of a token, in a time that does not depend on it; None if it is wrong."""
        return self._role(token, lambda own: own)

    def role_of_cookie(self, value: str) -> Role | None:
        """Return the role of a cookie's value, as made by `cookie`; None if it is wrong.

        The time taken does not depend on the value.
        """
        return self._role(value, _cookie)

    def cookie(self, role: Role) -> str:
        """Return the cookie value for a role; the role's token cannot be derived from it."""
        return _cookie(self.token if role is Role.ABORT else self.read_token)

    @property
    def abort_key(self) -> str:
        """Return the key that a page's request must have in the header `ABORT_KEY` for a change.

        Derived from the token; only pages for the role ABORT contain it.
        """
        return _derived_token(self.token, b"abort")

    def permits_abort(self, key: str) -> bool:
        """Return whether `key` equals `abort_key`; the time does not depend on it."""
        return _same(key, self.abort_key)

    def _role(self, value: str, form: Callable[[str], str]) -> Role | None:
        # both are compared, so that the time discloses nothing
        full = _same(value, form(self.token))
        reads = bool(self.read_token) and _same(value, form(self.read_token))
        return Role.ABORT if full else Role.READ if reads else None


def _same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), own.encode())


def _cookie(token: str) -> str:
    return _derived_token(token, b"cookie")


def _derived_token(token: str, purpose: bytes) -> str:
    return hmac.new(token.encode(), b"osbench web " + purpose, hashlib.sha256).hexdigest()
