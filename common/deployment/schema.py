"""Schema of a deployment record: Rally's `openstack` platform, and `osbench` for any service.

The schema of `openstack` (also named `existing@openstack`) accepts all records that Rally's
accepts, and the keys `enable_profiler`, `endpoint_overrides`, `api_versions` and `system_admin`;
users may have `auth_type` and `auth`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from osbench.common.errors import Problem
from osbench.common.network.server_address import HTTP, REDIS, server_address_fault

if TYPE_CHECKING:
    import jsonschema

#: Names of a platform -> the platform.
PLATFORMS = {"openstack": "openstack", "existing@openstack": "openstack", "osbench": "osbench"}
#: Keys that Rally allows next to a platform; osbench keeps them and does not read them.
NOTES = ("!version", "!description", "!extras", "!config")

_TEXT = {"type": "string"}
_OPTIONAL_TEXT = {"type": ["string", "null"]}
_NAME = {"type": "string", "minLength": 1}
_WEB_ADDRESS = {"type": "string", "format": "web-address"}

#: OSProfiler's default key, which is public.
DEFAULT_KEY = "SECRET_KEY"
DEFAULT_KEY_WARNING = (
    f"{DEFAULT_KEY} is OSProfiler's default key: anyone can make services with it trace; set "
    "another in [profiler] hmac_keys of the services, and in the record"
)

#: Drivers of OSProfiler (osprofiler.drivers), and the databases that its SQLAlchemy driver takes.
_STORES = (
    *REDIS,
    "elasticsearch",
    "jaeger",
    "loginsight",
    "messaging",
    "mongodb",
    "mysql",
    "mysql+mysqldb",
    "mysql+pymysql",
    "otlp",
    "postgresql",
    "postgresql+psycopg2",
    "redissentinel",
)

_PROFILING = {
    "profiler_hmac_key": {**_OPTIONAL_TEXT, "format": "hmac-key"},
    "profiler_conn_str": {**_OPTIONAL_TEXT, "format": "trace-store"},
    "enable_profiler": {"type": ["boolean", "null"]},
}

_PASSWORD_USER = {
    "type": "object",
    "properties": {
        "username": _NAME,
        "password": _TEXT,
        "tenant_name": _NAME,
        "project_name": _NAME,
        "domain_name": _OPTIONAL_TEXT,
        "user_domain_name": _OPTIONAL_TEXT,
        "project_domain_name": _OPTIONAL_TEXT,
    },
    "required": ["username", "password"],
    "additionalProperties": False,
}

_PLUGIN_USER = {
    "type": "object",
    "properties": {"auth_type": _NAME, "auth": {"type": "object"}},
    "required": ["auth_type", "auth"],
    "additionalProperties": False,
}

_USER = {
    "if": {"anyOf": [{"required": ["auth_type"]}, {"required": ["auth"]}]},
    "then": _PLUGIN_USER,
    "else": _PASSWORD_USER,
}

_CLIENT = {
    "type": "object",
    "properties": {
        "version": {"type": ["string", "number"]},
        "service_type": _TEXT,
        "pre_newton": {"type": "boolean"},
    },
    "additionalProperties": False,
}

#: As in the context `api_versions`, whose configuration overrides it.
_API_VERSION = {
    "type": "object",
    "properties": {"version": _TEXT, "service_type": _TEXT},
    "additionalProperties": False,
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "openstack": {
        "type": "object",
        "properties": {
            "auth_url": _WEB_ADDRESS,
            "region_name": _OPTIONAL_TEXT,
            "endpoint": {"type": ["string", "null"], "format": "address-if-any"},
            "endpoint_overrides": {"type": "object", "additionalProperties": _WEB_ADDRESS},
            "endpoint_type": {"enum": ["public", "internal", "admin", None]},
            "https_insecure": {"type": "boolean"},
            "https_cacert": _OPTIONAL_TEXT,
            "https_cert": _OPTIONAL_TEXT,
            "https_key": _OPTIONAL_TEXT,
            "admin": _USER,
            "system_admin": _USER,
            "users": {"type": "array", "minItems": 1, "items": _USER},
            "api_versions": {"type": "object", "additionalProperties": _API_VERSION},
            "api_info": {"type": "object", "additionalProperties": _CLIENT},
            **_PROFILING,
        },
        "required": ["auth_url"],
        "additionalProperties": False,
    },
    "osbench": {
        "type": "object",
        "properties": {
            "services": {"type": "object", "additionalProperties": _WEB_ADDRESS},
            **_PROFILING,
        },
        "additionalProperties": False,
    },
}


def _web_address_fault(value: str) -> str:
    fault = server_address_fault(value, HTTP)
    return f"must be an http:// or https:// address: it {fault}" if fault else ""


def _store_fault(value: str) -> str:
    scheme, _, rest = value.partition("://")
    if scheme not in _STORES:
        return f"must be the address of a trace store, beginning with one of {', '.join(_STORES)}"
    # configured elsewhere, or a list of hosts
    if scheme == "messaging" or (rest and scheme in ("mongodb", "redissentinel")):
        return ""
    fault = server_address_fault(value, (scheme,))
    return f"must be the address of a trace store: it {fault}" if fault else ""


def _key_fault(value: str) -> str:
    """Services split keys at commas, and strip the parts (osprofiler.web.WsgiMiddleware)."""
    if "," in value:
        return "must not have a comma: services read several keys there; write one of them"
    if value != value.strip():
        return "must not begin or end with a blank, which services remove from theirs"
    return ""


#: Checks of texts by format of the schema: they return a message, or "" for a valid text.
_FAULTS: dict[str, Callable[[str], str]] = {
    "web-address": _web_address_fault,
    "address-if-any": lambda value: _web_address_fault(value) if value else "",
    "trace-store": lambda value: _store_fault(value) if value else "",
    "hmac-key": _key_fault,
}


def _is_free_of(fault: Callable[[str], str], value: object) -> bool:
    return not isinstance(value, str) or not fault(value)


_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_SCHEMA_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "number": "a number",
    "null": "null",
}


def problems_of(spec: Any) -> list[Problem]:
    """Return all problems of the content of a deployment file; [] if it is valid.

    Messages repeat no password or key.
    """
    if not isinstance(spec, Mapping):
        return [Problem("", f"must be an object, is {_kind(spec)}")]
    problems = []
    platforms = [name for name in spec if name in PLATFORMS]
    for name in spec:
        if name not in PLATFORMS and name not in NOTES:
            problems.append(
                Problem(str(name), f"unknown platform; there are {_quoted_names(PLATFORMS)}")
            )
    if len(platforms) != 1:
        found = _quoted_names(platforms) if platforms else "none"
        problems.append(Problem("", f"needs one of {_quoted_names(PLATFORMS)}, has {found}"))
    if spec.get("!version", 1) != 1:
        problems.append(Problem("!version", "must be 1"))
    for name in platforms:
        problems += _platform_problems(name, spec[name])
    return problems


def _platform_problems(name: str, content: Any) -> Iterator[Problem]:
    # slow to import, and a worker that receives a record does not check it again
    import jsonschema  # noqa: PLC0415 - see above

    formats = jsonschema.FormatChecker(formats=())
    for format_name, fault in _FAULTS.items():
        formats.checks(format_name)(partial(_is_free_of, fault))
    validator = jsonschema.Draft202012Validator(SCHEMAS[PLATFORMS[name]], format_checker=formats)
    for error in validator.iter_errors(content):
        place = name + "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
        )
        yield from _schema_problems(place, error)
    if PLATFORMS[name] != "openstack" or not isinstance(content, Mapping):
        return
    if "admin" not in content and "users" not in content:
        yield Problem(name, "needs 'admin' or 'users'")
    if "system_admin" in content and "admin" not in content:
        yield Problem(
            f"{name}.system_admin", "also needs 'admin': it sends requests to Keystone only"
        )
    for role in ("admin", "system_admin"):
        yield from _user_problems(f"{name}.{role}", content.get(role))
    users = content.get("users")
    for index, user in enumerate(users if isinstance(users, list) else []):
        yield from _user_problems(f"{name}.users[{index}]", user)


def _user_problems(place: str, user: Any) -> Iterator[Problem]:
    """Yield a problem if a user with a password names no project, or names it by two keys."""
    if isinstance(user, Mapping) and not {"auth_type", "auth"} & user.keys():
        projects = [key for key in ("project_name", "tenant_name") if key in user]
        if not projects:
            yield Problem(place, "needs 'project_name' (or 'tenant_name')")
        elif len(projects) == 2:
            yield Problem(place, "has both 'project_name' and 'tenant_name'")


def _schema_problems(place: str, error: jsonschema.ValidationError) -> Iterator[Problem]:
    """Yield our problems for an error of jsonschema, whose own message would repeat the value."""
    rule = error.validator
    wanted: Any = error.validator_value
    value: Any = error.instance
    known: Any = error.schema
    if rule == "required":
        # There is one error per missing key, and only its text names the key.
        missing = next(key for key in wanted if repr(key) in error.message)
        yield Problem(place, f"needs {missing!r}")
    elif rule == "additionalProperties":
        for key in value:
            if key not in known["properties"]:
                close = difflib.get_close_matches(str(key), known["properties"], n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                yield Problem(f"{place}.{key}", f"unknown key{hint}")
    elif rule == "type":
        kinds = [wanted] if isinstance(wanted, str) else wanted
        allowed = " or ".join(_SCHEMA_NAMES[kind] for kind in kinds)
        yield Problem(place, f"must be {allowed}, is {_kind(value)}")
    elif rule == "enum":
        allowed = ", ".join("null" if item is None else repr(item) for item in wanted)
        yield Problem(place, f"must be one of {allowed}, is {value!r}")
    elif rule == "format":
        yield Problem(place, _FAULTS[wanted](value))
    else:
        yield Problem(place, "must not be empty")


def _kind(value: Any) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _quoted_names(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
