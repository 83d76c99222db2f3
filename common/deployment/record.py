"""The deployment record: the system under test, its credentials, and its tracing.

The file is Rally's, or osbench's for services without Keystone:

    {"openstack": {"auth_url": "http://cloud:5000/v3", "admin": {...}, "users": [...], ...}}
    {"osbench": {"services": {"shop": "http://shop:8080"}}}

A user is `{"username": ..., "password": ..., "project_name": ...}`, or any auth plug-in of
keystoneauth1: `{"auth_type": "v3applicationcredential", "auth": {...}}`.

Both may hold `profiler_hmac_key` and `profiler_conn_str` (OSProfiler's key and trace store) and
`enable_profiler`. `services` names the web services under test; trace headers go only to them.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.schema import PLATFORMS, problems_of
from osbench.common.errors import DeploymentError
from osbench.common.files.named_files import read_text
from osbench.common.files.yaml_documents import YamlBoundError, load_yaml
from osbench.common.network.origins import origin
from osbench.common.secrets.masking import mask


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The content of a deployment file, with a name, and a version that is a keyed hash of it."""

    name: str
    #: The content of the file, with secrets: show `masked()` instead.
    spec: Mapping[str, Any] = field(repr=False, compare=False)
    version: str
    #: Tokens that were obtained for a run, by the place of the credential.
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_spec(
        cls, name: str, spec: Any, *, source: str = "deployment", salt: bytes | None = None
    ) -> Self:
        """Create a record from the content of a deployment file, which is checked.

        The version is a keyed hash of the content; `salt`, its key (None: random), prevents
        guessing passwords from it. Raises DeploymentError with all problems, also for a value that
        JSON does not have; `source` begins the message.
        """
        problems = problems_of(spec)
        if problems:
            count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
            lines = "\n".join(f"  {problem}" for problem in problems)
            raise DeploymentError(f"{source}: {count} to correct\n{lines}")
        try:
            content = json.loads(json.dumps(spec, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise DeploymentError(
                f"{source}: a value is not text, a number, true, false, null, a list or an "
                "object: write it as text"
            ) from None
        ordered = json.dumps(content, sort_keys=True).encode()
        digest = hmac.digest(salt or secrets.token_bytes(16), ordered, "sha256")
        return cls(name=name, spec=content, version=digest.hex()[:16])

    @classmethod
    def from_file(cls, name: str, path: str | Path) -> Self:
        """Read and check the record of a JSON or YAML file; raises DeploymentError if it fails."""
        return cls.from_spec(name, read_spec(Path(path)), source=str(path))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Create a record from a dict of `to_dict`; the content is not checked again.

        Raises DeploymentError for missing or unknown keys.
        """
        try:
            return cls(**record)
        except TypeError:
            raise DeploymentError("malformed deployment record") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dict of msgpack types, with secrets and tokens: encrypt it."""
        record = {"name": self.name, "spec": dict(self.spec), "version": self.version}
        return record | {"states": dict(self.states)} if self.states else record

    def with_states(self, states: Mapping[str, str]) -> Self:
        """Return a copy with the tokens `states`, by credential, such as "admin" or "users[0]".

        A token is a JSON string of `login.state_of`.
        """
        # not as text, so that the token is known as a secret by its name
        return replace(self, states={place: json.loads(state) for place, state in states.items()})

    def masked(self) -> dict[str, Any]:
        """Return a copy of the content with passwords, keys and other secrets masked."""
        masked: dict[str, Any] = mask(self.spec)
        return masked

    @property
    def platform(self) -> str:
        """Return `openstack`, or `osbench` for services without Keystone."""
        return PLATFORMS[self._platform_name]

    @property
    def content(self) -> Mapping[str, Any]:
        """Return the part of the content under the platform's name, such as `openstack`."""
        content: Mapping[str, Any] = self.spec[self._platform_name]
        return content

    @property
    def _platform_name(self) -> str:
        return next(name for name in self.spec if name in PLATFORMS)

    @cached_property
    def credentials(self) -> Mapping[str, Credential]:
        """Return all credentials by their key in the record: "admin", "system_admin", "users[0]"...

        Empty for the platform `osbench`.
        """
        content = self.content if self.platform == "openstack" else {}
        placed = {key: content[key] for key in ("admin", "system_admin") if key in content}
        placed |= {f"users[{at}]": user for at, user in enumerate(content.get("users", ()))}
        return {
            place: self._credential(user, self.states.get(place)) for place, user in placed.items()
        }

    @property
    def admin(self) -> Credential | None:
        """Return the administrator's credential; None if the record has none."""
        return self.credentials.get("admin")

    @property
    def system_admin(self) -> Credential | None:
        """Return the record's credential for requests to Keystone; None: `admin` sends them."""
        return self.credentials.get("system_admin")

    @cached_property
    def users(self) -> tuple[Credential, ...]:
        """Return the credentials of plain users, in the order of the record."""
        return tuple(
            found for place, found in self.credentials.items() if place.startswith("users[")
        )

    @property
    def profiler_hmac_key(self) -> str | None:
        """Return OSProfiler's HMAC key, by which services accept trace headers, or None."""
        return self.content.get("profiler_hmac_key") or None

    @property
    def profiler_conn_str(self) -> str | None:
        """Return OSProfiler's connection string, perhaps with a password, or None."""
        return self.content.get("profiler_conn_str") or None

    @property
    def readable_store(self) -> str | None:
        """Connection string of the trace store if osbench can read it: a Redis, and there is a key.

        Nothing is connected.
        """
        store = self.profiler_conn_str or ""
        known = self.profiler_hmac_key and store.startswith(("redis://", "rediss://"))
        return store if known else None

    @property
    def enable_profiler(self) -> bool | None:
        """Return the record's `enable_profiler`; None: the configuration file decides."""
        return self.content.get("enable_profiler")

    @property
    def services(self) -> Mapping[str, str]:
        """Return the base URLs of the services under test, by name; empty for OpenStack."""
        services: Mapping[str, str] = self.content.get("services", {})
        return services

    @property
    def api_versions(self) -> Mapping[str, Mapping[str, str]]:
        """Return the configured `version` and `service_type` of services, by service name."""
        versions: Mapping[str, Mapping[str, str]] = self.content.get("api_versions", {})
        return versions

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Return the origins that may get trace headers: Keystone, endpoint overrides, `services`.

        Origins in a cloud's service catalogue are not included, since that needs a login; callers
        add them.
        """
        addresses = [*self.services.values()]
        if self.platform == "openstack":
            addresses.append(self.content["auth_url"])
            addresses += [one.auth_url for one in self.credentials.values()]
            addresses += self._overrides.values()
        return frozenset(origin(address) for address in addresses)

    @property
    def _overrides(self) -> Mapping[str, str]:
        content = self.content
        # Rally's name for the address of Keystone
        identity = {"identity": content["endpoint"]} if content.get("endpoint") else {}
        return {**identity, **content.get("endpoint_overrides", {})}

    def _credential(self, user: Mapping[str, Any], state: Mapping[str, Any] | None) -> Credential:
        content = self.content
        auth = user.get("auth", {})
        named = auth or user
        # Rally's short form: one domain for the user and its project.
        domain = user.get("domain_name") or None
        return Credential(
            auth_url=auth.get("auth_url") or content["auth_url"],
            username=named.get("username") or "",
            password=named.get("password") or "",
            project_name=named.get("project_name") or named.get("tenant_name") or "",
            user_domain_name=named.get("user_domain_name") or domain,
            project_domain_name=named.get("project_domain_name") or domain,
            region_name=content.get("region_name") or None,
            endpoint_type=content.get("endpoint_type") or "public",
            https_insecure=content.get("https_insecure", False),
            https_cacert=content.get("https_cacert") or None,
            https_cert=content.get("https_cert") or None,
            https_key=content.get("https_key") or None,
            auth_type=user.get("auth_type", ""),
            auth=auth,
            endpoint_overrides=self._overrides,
            state=json.dumps(state) if state else "",
        )


def read_spec(path: Path) -> Any:
    """Read a deployment file: as YAML if it ends in .yaml or .yml, else as JSON; return its value.

    Raises DeploymentError with path and position of the first error; it does not quote the file.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise DeploymentError(
            f"cannot read {path}: {error.strerror}; give a file that can be read"
        ) from None
    except UnicodeDecodeError:
        raise DeploymentError(f"{path} is not text in UTF-8; save it in UTF-8") from None
    if path.suffix in {".yaml", ".yml"}:
        return _read_yaml(path, text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DeploymentError(
            f"{path}: line {error.lineno}, column {error.colno}: is not JSON: {error.msg}; correct "
            "it there, or name a file in YAML *.yaml"
        ) from None
    except RecursionError:
        raise DeploymentError(f"{path} is nested too deeply; use fewer levels") from None


def _read_yaml(path: Path, text: str) -> Any:
    try:
        return load_yaml(text)
    except YamlBoundError as error:
        raise DeploymentError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise DeploymentError(f"{path}: {place}is not YAML; check quotes and indents") from None
