"""The deployment record: what is under test, with which credentials, and how it is traced.

The file is Rally's, or one of ours for services without Keystone:

    {"openstack": {"auth_url": "http://cloud:5000/v3", "admin": {...}, "users": [...], ...}}
    {"osbench": {"services": {"shop": "http://shop:8080"}}}

Both may hold `profiler_hmac_key` and `profiler_conn_str` (OSProfiler's key and trace store) and
`enable_profiler`. `services` names the web services under test; trace headers go only to them.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from osbench.common.deployment.record_sources import read_spec, spec_from_environment
from osbench.common.deployment.schema import PLATFORMS, problems_of
from osbench.common.errors import DeploymentError
from osbench.common.network.origins import origin
from osbench.common.secrets.masking import mask


@dataclass(frozen=True, kw_only=True)
class Credential:
    """One user in one project of a cloud."""

    auth_url: str
    username: str
    password: str = field(repr=False)
    project_name: str
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

    @property
    def verify(self) -> bool | str:
        """What requests and keystoneauth1 call `verify`."""
        return False if self.https_insecure else self.https_cacert or True

    @property
    def cert(self) -> str | tuple[str, str] | None:
        """What requests and keystoneauth1 call `cert`."""
        if self.https_cert and self.https_key:
            return self.https_cert, self.https_key
        return self.https_cert

    def password_options(self) -> dict[str, Any]:
        """Keyword arguments of `keystoneauth1.identity.Password`, for Keystone v2 and v3."""
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


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A named deployment record; `version` changes whenever its content does."""

    name: str
    #: The content of the file, with secrets: show `masked()` instead.
    spec: Mapping[str, Any] = field(repr=False, compare=False)
    version: str

    @classmethod
    def from_spec(
        cls, name: str, spec: Any, *, source: str = "deployment", salt: bytes | None = None
    ) -> Self:
        """A record with the content of a file. Raises DeploymentError with every problem.

        `salt` (random where None) prevents guessing passwords from the version.
        """
        problems = problems_of(spec)
        if problems:
            count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
            lines = "\n".join(f"  {problem}" for problem in problems)
            raise DeploymentError(f"{source}: {count}\n{lines}")
        try:
            content = json.loads(json.dumps(spec, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise DeploymentError(f"{source}: holds a value that JSON cannot express") from None
        ordered = json.dumps(content, sort_keys=True).encode()
        digest = hmac.digest(salt or secrets.token_bytes(16), ordered, "sha256")
        return cls(name=name, spec=content, version=digest.hex()[:16])

    @classmethod
    def from_file(cls, name: str, path: str | Path) -> Self:
        """A record from a file in JSON or YAML. Raises DeploymentError."""
        return cls.from_spec(name, read_spec(Path(path)), source=str(path))

    @classmethod
    def from_environment(cls, name: str, environ: Mapping[str, str]) -> Self:
        """A record from OS_* and OSPROFILER_* variables. Raises DeploymentError."""
        return cls.from_spec(name, spec_from_environment(environ), source="environment")

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The record from what `to_dict` returned. Raises DeploymentError for anything else."""
        try:
            return cls(**record)
        except TypeError:
            raise DeploymentError("malformed deployment record") from None

    def to_dict(self) -> dict[str, Any]:
        """The record in msgpack types, with its secrets: to be encrypted."""
        return {"name": self.name, "spec": dict(self.spec), "version": self.version}

    def masked(self) -> dict[str, Any]:
        """The content with passwords, keys and user information of URLs hidden."""
        masked: dict[str, Any] = mask(self.spec)
        return masked

    @property
    def platform(self) -> str:
        """`openstack`, or `osbench` for services without Keystone."""
        return PLATFORMS[self._platform_name]

    @property
    def content(self) -> Mapping[str, Any]:
        """The configuration under the platform's name."""
        content: Mapping[str, Any] = self.spec[self._platform_name]
        return content

    @property
    def _platform_name(self) -> str:
        return next(name for name in self.spec if name in PLATFORMS)

    @cached_property
    def admin(self) -> Credential | None:
        """The administrator's credential, if the record has one."""
        user = self.content.get("admin")
        return None if user is None else self._credential(user)

    @cached_property
    def users(self) -> tuple[Credential, ...]:
        """The credentials of plain users that the record has, in its order."""
        return tuple(self._credential(user) for user in self.content.get("users", ()))

    @property
    def profiler_hmac_key(self) -> str | None:
        """The key that the services under test accept trace headers with."""
        return self.content.get("profiler_hmac_key") or None

    @property
    def profiler_conn_str(self) -> str | None:
        """OSProfiler's connection string of the trace store; may hold a password."""
        return self.content.get("profiler_conn_str") or None

    @property
    def enable_profiler(self) -> bool | None:
        """The record's own profiling switch; None leaves it to the configuration file."""
        return self.content.get("enable_profiler")

    @property
    def services(self) -> Mapping[str, str]:
        """Base addresses of the services under test by name; empty for OpenStack."""
        services: Mapping[str, str] = self.content.get("services", {})
        return services

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Origins of Keystone or of each of `services`: where trace headers may go.

        The hosts of a cloud's service catalogue are added once it has been read.
        """
        addresses = [*self.services.values()]
        if self.platform == "openstack":
            addresses.append(self.content["auth_url"])
        return frozenset(origin(address) for address in addresses)

    def _credential(self, user: Mapping[str, Any]) -> Credential:
        content = self.content
        # Rally's short form: one domain for the user and its project.
        domain = user.get("domain_name") or None
        return Credential(
            auth_url=content["auth_url"],
            username=user["username"],
            password=user["password"],
            project_name=user.get("project_name") or user["tenant_name"],
            user_domain_name=user.get("user_domain_name") or domain,
            project_domain_name=user.get("project_domain_name") or domain,
            region_name=content.get("region_name") or None,
            endpoint_type=content.get("endpoint_type") or "public",
            https_insecure=content.get("https_insecure", False),
            https_cacert=content.get("https_cacert") or None,
            https_cert=content.get("https_cert") or None,
            https_key=content.get("https_key") or None,
        )
