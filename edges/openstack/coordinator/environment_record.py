"""Makes a deployment record from the environment variables of OpenStack's clients (OS_...)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import DeploymentError

_YES = {"1", "true", "yes", "on"}
_NO = {"", "0", "false", "no", "off"}
#: Variables of OSProfiler that are read, and other variables with the meaning of one.
_PROFILING = ("OSPROFILER_HMAC_KEY", "OSPROFILER_CONN_STR")
_INSTEAD = {"OSPROFILER_CONNECTION_STRING": "OSPROFILER_CONN_STR"}


@dataclass(frozen=True, kw_only=True)
class EnvironmentRecord:
    """A deployment record made from environment variables, and the variables without effect."""

    spec: Mapping[str, Any]
    #: Variables of OpenStack's clients that are set and have no effect, sorted.
    unused: tuple[str, ...] = ()


def openstack_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of OpenStack's clients (OS_...) that are not empty, by name.

    OS_TEST..., OS_STD... and OS_LOG... are left out, which openstacksdk ignores, too.
    """
    return {
        name: value
        for name, value in environ.items()
        if value and name.startswith("OS_") and not name.startswith(("OS_TEST", "OS_STD", "OS_LOG"))
    }


def profiling_of(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the record's keys for OSProfiler from OSPROFILER_HMAC_KEY and OSPROFILER_CONN_STR.

    Keys of unset variables are left out.
    """
    return _nonempty_values(
        {
            "profiler_hmac_key": environ.get("OSPROFILER_HMAC_KEY"),
            "profiler_conn_str": environ.get("OSPROFILER_CONN_STR"),
        }
    )


def unused_profiling(environ: Mapping[str, str]) -> list[str]:
    """Return notes on variables of OSProfiler that are set and have no effect, sorted by name.

    The note on OSPROFILER_CONNECTION_STRING names the variable to set instead.
    """
    names = sorted(
        name
        for name, value in environ.items()
        if value and name.startswith("OSPROFILER_") and name not in _PROFILING
    )
    return [
        f"not used: {name}" + (f"; set {_INSTEAD[name]} instead" if name in _INSTEAD else "")
        for name in names
    ]


def spec_from_environment(environ: Mapping[str, str]) -> EnvironmentRecord:
    """Return the content of a deployment record from the variables of OpenStack's clients.

    OSProfiler's variables are added; with these alone the record is of platform `osbench`. OS_CLOUD
    is ignored. Raises DeploymentError, which lists missing variables and a bad OS_INSECURE, or
    names the problem of the auth plug-in.
    """
    given, profiling = openstack_variables(environ), profiling_of(environ)
    if profiling and not given:
        return EnvironmentRecord(spec={"osbench": profiling})
    auth_type = _first(given, "OS_AUTH_TYPE", "OS_AUTH_PLUGIN")
    if not auth_type:
        is_token = not given.get("OS_PASSWORD") and _first(given, "OS_TOKEN", "OS_AUTH_TOKEN")
        auth_type = "token" if is_token else "password"
    problems = _missing(given, auth_type)
    insecure = given.get("OS_INSECURE", "").lower()
    if insecure not in _YES | _NO:
        problems.append(f"OS_INSECURE is {insecure!r}, neither true nor false")
    if problems:
        raise DeploymentError(
            f"environment: {'; '.join(problems)}; correct these variables{_hint(given, auth_type)}"
        )
    used = _used_by_all(given)
    admin, its = _simple(given, auth_type) or _by_plugin(given, auth_type)
    content = {"auth_url": given["OS_AUTH_URL"], "admin": admin} | _openstack(given)
    return EnvironmentRecord(
        spec={"openstack": content | {"https_insecure": insecure in _YES} | profiling},
        unused=tuple(sorted(given.keys() - used - its)),
    )


#: Variables that log in with a password in the short form of a record, by key.
_SIMPLE = {
    "username": ("OS_USERNAME",),
    "password": ("OS_PASSWORD",),
    "project_name": ("OS_PROJECT_NAME", "OS_TENANT_NAME"),
    "user_domain_name": ("OS_USER_DOMAIN_NAME",),
    "project_domain_name": ("OS_PROJECT_DOMAIN_NAME",),
}
#: Variables that say who logs in, and for what, if it is not a name.
_SCOPED = (
    *("OS_PROJECT_ID", "OS_TENANT_ID", "OS_DOMAIN_ID", "OS_DOMAIN_NAME"),
    *("OS_SYSTEM_SCOPE", "OS_TRUST_ID"),
)
_DETAILED = ("OS_USER_ID", "OS_DEFAULT_DOMAIN_ID", "OS_DEFAULT_DOMAIN_NAME", *_SCOPED)
_DOMAIN_IDS = {
    "OS_USER_DOMAIN_ID": "OS_USER_DOMAIN_NAME",
    "OS_PROJECT_DOMAIN_ID": "OS_PROJECT_DOMAIN_NAME",
}
#: Variables whose meaning does not depend on the login.
_COMMON = {"OS_AUTH_URL", "OS_AUTH_TYPE", "OS_AUTH_PLUGIN", "OS_REGION_NAME", "OS_INSECURE"}
_COMMON |= {"OS_CACERT", "OS_CERT", "OS_KEY", "OS_INTERFACE", "OS_ENDPOINT_TYPE", "OS_ENDPOINT"}
_COMMON |= {"OS_IDENTITY_API_VERSION"}
_OVERRIDE, _VERSION = "_ENDPOINT_OVERRIDE", "_API_VERSION"
#: Services by the word in the variable of their version.
_VERSIONED = {
    "COMPUTE": "nova",
    "IMAGE": "glance",
    "NETWORK": "neutron",
    "VOLUME": "cinder",
    "BLOCK_STORAGE": "cinder",
    "PLACEMENT": "placement",
    "MESSAGING": "zaqar",
    "WORKFLOW": "mistral",
}


def _missing(given: Mapping[str, str], auth_type: str) -> list[str]:
    needed: list[tuple[str, ...]] = [("OS_AUTH_URL",)]
    if auth_type == "password":
        scopes = (*_SIMPLE["project_name"], *_SCOPED)
        needed += [("OS_USERNAME", "OS_USER_ID"), ("OS_PASSWORD",), scopes]
    return [f"{names[0]} is not set" for names in needed if not _first(given, *names)]


def _hint(given: Mapping[str, str], auth_type: str) -> str:
    if auth_type == "password" and any("APPLICATION_CREDENTIAL" in name for name in given):
        return "; for an application credential set OS_AUTH_TYPE=v3applicationcredential"
    return ""


def _used_by_all(given: Mapping[str, str]) -> set[str]:
    used = _COMMON & given.keys()
    used |= {name for name in given if name.endswith(_OVERRIDE)}
    return used | {f"OS_{word}{_VERSION}" for word in _VERSIONED}


def _simple(given: Mapping[str, str], auth_type: str) -> tuple[dict[str, Any], set[str]] | None:
    """Return a user of a record by name and password, and the variables that it may use.

    None if they need an auth plug-in: another type of login, ids, or other scopes.
    """
    default = {
        name
        for name, instead in _DOMAIN_IDS.items()
        if given.get(name) == "default" and not given.get(instead)
    }
    others = {*_DETAILED, *(name for name in _DOMAIN_IDS if name not in default)}
    if auth_type not in ("password", "v3password") or others & given.keys():
        return None
    user = _nonempty_values({key: _first(given, *names) for key, names in _SIMPLE.items()})
    if not {"username", "password", "project_name"} <= user.keys():
        return None
    return user, {name for names in _SIMPLE.values() for name in names} | default


def _by_plugin(given: Mapping[str, str], auth_type: str) -> tuple[dict[str, Any], set[str]]:
    """Return a user of a record with an auth plug-in, and the variables that it may use.

    Raises DeploymentError as `loader_of` does.
    """
    # only such an environment needs it, and it is slow to import
    from osbench.edges.openstack.common.login_plugins import loader_of  # noqa: PLC0415

    auth: dict[str, Any] = {}
    used = set()
    methods = [one.strip() for one in given.get("OS_AUTH_METHODS", "").split(",") if one.strip()]
    for option in loader_of(auth_type, {"auth_methods": methods}).get_options():
        names = [f"OS_{one.dest.upper()}" for one in (option, *option.deprecated)]
        names += ["OS_AUTH_TOKEN"] if option.dest == "token" else []
        found = _first(given, *names)
        if found and option.dest not in ("auth_url", "auth_methods"):
            auth[option.dest] = found
        used |= {*names}
    if methods:
        auth["auth_methods"] = methods
    named = [auth.get(key) for key in ("user_domain_id", "user_domain_name", "user_id")]
    if auth_type == "password" and not any(named):
        # as the command `openstack` does
        auth.setdefault("default_domain_id", "default")
    return {"auth_type": auth_type, "auth": auth}, used


def _openstack(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of a record that do not depend on the login; empty values are left out."""
    interface = _first(given, "OS_ENDPOINT_TYPE", "OS_INTERFACE")
    identity = given.get("OS_IDENTITY_API_VERSION")
    words = {name: name.removeprefix("OS_").removesuffix(_OVERRIDE) for name in given}
    return _nonempty_values(
        {
            "region_name": given.get("OS_REGION_NAME"),
            "endpoint_type": interface and interface.removesuffix("URL"),
            "endpoint": given.get("OS_ENDPOINT"),
            "https_cacert": given.get("OS_CACERT"),
            "https_cert": given.get("OS_CERT"),
            "https_key": given.get("OS_KEY"),
            "endpoint_overrides": {
                word.lower().replace("_", "-"): given[name]
                for name, word in words.items()
                if name.endswith(_OVERRIDE)
            },
            "api_versions": {
                service: {"version": given[f"OS_{word}{_VERSION}"]}
                for word, service in _VERSIONED.items()
                if given.get(f"OS_{word}{_VERSION}")
            },
            "api_info": identity and {"keystone": {"version": identity}},
        }
    )


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _nonempty_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
