"""A credential of a cloud: a user name and password, or any auth plug-in of keystoneauth1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

#: Options that name who logs in, the most specific first, with the word for it.
_WHO = {
    "username": "user",
    "user_id": "user with the id",
    "application_credential_name": "application credential",
    "application_credential_id": "application credential",
    "client_id": "client",
    "oauth2_client_id": "client",
    "identity_provider": "a user of the identity provider",
}
#: Options that name what a token is for.
_SCOPES = {
    "project_name": "of project",
    "project_id": "of the project with the id",
    "tenant_name": "of project",
    "tenant_id": "of the project with the id",
    "domain_name": "of domain",
    "domain_id": "of the domain with the id",
    "trust_id": "by trust",
}
#: An application credential has the project that it was made in.
_SCOPE_KEYS = (*_SCOPES, "project_domain_name", "project_domain_id", "system_scope")
_SCOPE_KEYS += ("application_credential_id", "application_credential_name")


@dataclass(frozen=True, kw_only=True)
class Credential:
    """Login data for one user of a cloud, with region, interface, TLS files, endpoint overrides.

    By user name and password, or by an auth plug-in of keystoneauth1.
    """

    auth_url: str
    #: With `auth_type` the parts of `auth` with these names, or "".
    username: str = ""
    password: str = field(default="", repr=False)
    project_name: str = ""
    #: Domain names; None leaves it to Keystone's domain with the id "default".
    user_domain_name: str | None = None
    project_domain_name: str | None = None
    region_name: str | None = None
    #: public, internal or admin.
    endpoint_type: str = "public"
    https_insecure: bool = False
    #: Paths of files in PEM.
    https_cacert: str | None = None
    https_cert: str | None = None
    https_key: str | None = None
    #: Name of an auth plug-in of keystoneauth1; "" for the user and password above.
    auth_type: str = ""
    #: Options of the plug-in, by the names of keystoneauth1's loaders.
    auth: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    #: Addresses that replace addresses of the catalogue, by service type.
    endpoint_overrides: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: A token obtained before (`login.state_of`), or "".
    state: str = field(default="", repr=False)

    @property
    def verify(self) -> bool | str:
        """Return the argument `verify` of requests: False (insecure), a CA file's path, or True."""
        return False if self.https_insecure else self.https_cacert or True

    @property
    def cert(self) -> str | tuple[str, str] | None:
        """Return the argument `cert` of requests: a path, a pair (certificate, key), or None."""
        if self.https_cert and self.https_key:
            return self.https_cert, self.https_key
        return self.https_cert

    @property
    def login_name(self) -> str:
        """Return the name or id of the user, application credential or client; "" if not given."""
        named = next((key for key in _WHO if self.auth.get(key)), "")
        return self.username or str(self.auth.get(named, ""))

    @property
    def subject(self) -> str:
        """Return the user in words, for messages: "user 'alice'", or "a login by PLUG-IN"."""
        if not self.auth_type:
            return f"user {self.username!r}"
        named = next((key for key in _WHO if self.auth.get(key)), "")
        return f"{_WHO[named]} {self.auth[named]!r}" if named else f"a login by {self.auth_type}"

    @property
    def scope(self) -> str:
        """Return the scope of tokens in words, for messages, such as "of project 'shop'".

        "" if the auth plug-in's options name no project, domain or system.
        """
        if not self.auth_type:
            return f"of project {self.project_name!r}"
        if self.auth.get("system_scope"):
            return "with system scope"
        named = next((key for key in _SCOPES if self.auth.get(key)), "")
        return f"{_SCOPES[named]} {self.auth[named]!r}" if named else ""

    def __str__(self) -> str:
        return f"{self.subject} {self.scope}".rstrip()

    @property
    def project_key(self) -> tuple[Any, ...]:
        """Return a tuple that is equal for credentials of the same project, to group users.

        It differs between a project given by name and the same project given by id.
        """
        if not self.auth_type:
            return self.project_name, self.project_domain_name
        return tuple(self.auth.get(key) for key in _SCOPE_KEYS)

    @property
    def project_domain(self) -> str:
        """Return name or id of the project's domain; "default" if not given."""
        return self.project_domain_name or self.auth.get("project_domain_id") or "default"

    @property
    def user_domain(self) -> str:
        """Return name or id of the user's domain; "default" if not given."""
        return self.user_domain_name or self.auth.get("user_domain_id") or "default"

    def for_user(self, **fields: Any) -> Self:
        """Return a copy for another user of the cloud: with a password, no plug-in and no token."""
        return replace(self, auth_type="", auth={}, state="", **fields)

    def without_token(self) -> Self:
        """Return a copy without the stored token, to log in anew; itself if it has none."""
        return replace(self, state="") if self.state else self

    def plugin_options(self) -> dict[str, Any]:
        """Return the options of the auth plug-in, with `auth_url`; `auth` may override it."""
        return {"auth_url": self.auth_url, **self.auth}

    def password_options(self) -> dict[str, Any]:
        """Return keyword arguments of `keystoneauth1.identity.Password`, for Keystone v2 and v3.

        Missing domain names become the domain id "default", except for a Keystone v2 address.
        """
        return {
            "auth_url": self.auth_url,
            "username": self.username,
            "password": self.password,
            "project_name": self.project_name,
            "user_domain_name": self.user_domain_name,
            "project_domain_name": self.project_domain_name,
            "user_domain_id": None if self.user_domain_name else self._default_domain,
            "project_domain_id": None if self.project_domain_name else self._default_domain,
        }

    @property
    def _default_domain(self) -> str | None:
        # Keystone v2 has no domains and refuses to be asked for one.
        return None if "/v2.0" in self.auth_url else "default"
