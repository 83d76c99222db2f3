"""Where the content of a deployment record comes from: a file, or the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from osbench.common.errors import DeploymentError
from osbench.common.named_files import read_text
from osbench.common.yaml_documents import load_yaml

_YES = {"1", "true", "yes", "on"}
_NO = {"", "0", "false", "no", "off"}


def read_spec(path: Path) -> Any:
    """The content of a deployment file: YAML where the file name says so, else JSON.

    Raises DeploymentError with the position of the first error, without the text there.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise DeploymentError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DeploymentError(f"{path}: is not text in UTF-8") from None
    if path.suffix in {".yaml", ".yml"}:
        return _read_yaml(path, text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DeploymentError(
            f"{path}: line {error.lineno}, column {error.colno}: is not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise DeploymentError(f"{path}: is nested too deeply") from None


def _read_yaml(path: Path, text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise DeploymentError(f"{path}: {place}is not YAML") from None


def spec_from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The record that the variables of OpenStack's clients describe, with OSPROFILER_HMAC_KEY
    and OSPROFILER_CONN_STR; with those two alone, a record without OpenStack.

    Raises DeploymentError with all variables that are missing or refused.
    """
    profiling = _chosen(
        {
            "profiler_hmac_key": environ.get("OSPROFILER_HMAC_KEY"),
            "profiler_conn_str": environ.get("OSPROFILER_CONN_STR"),
        }
    )
    if profiling and not _first(environ, "OS_AUTH_URL", "OS_USERNAME", "OS_PASSWORD"):
        return {"osbench": profiling}
    needed = ["OS_AUTH_URL", "OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME"]
    if environ.get("OS_TENANT_NAME"):
        needed.remove("OS_PROJECT_NAME")
    problems = [f"{name} is not set" for name in needed if not environ.get(name)]
    insecure = environ.get("OS_INSECURE", "").lower()
    if insecure not in _YES | _NO:
        problems.append(f"OS_INSECURE is {insecure!r}, neither true nor false")
    if problems:
        raise DeploymentError("environment: " + "; ".join(problems))
    return {"openstack": _openstack(environ) | {"https_insecure": insecure in _YES} | profiling}


def _openstack(environ: Mapping[str, str]) -> dict[str, Any]:
    interface = _first(environ, "OS_ENDPOINT_TYPE", "OS_INTERFACE")
    identity = _first(environ, "OS_IDENTITY_API_VERSION", "IDENTITY_API_VERSION")
    admin = {
        "username": environ["OS_USERNAME"],
        "password": environ["OS_PASSWORD"],
        "project_name": _first(environ, "OS_PROJECT_NAME", "OS_TENANT_NAME"),
        "user_domain_name": environ.get("OS_USER_DOMAIN_NAME"),
        "project_domain_name": environ.get("OS_PROJECT_DOMAIN_NAME"),
    }
    return _chosen(
        {
            "auth_url": environ["OS_AUTH_URL"],
            "admin": _chosen(admin),
            "region_name": environ.get("OS_REGION_NAME"),
            "endpoint_type": interface and interface.removesuffix("URL"),
            "https_cacert": environ.get("OS_CACERT"),
            "https_cert": environ.get("OS_CERT"),
            "https_key": environ.get("OS_KEY"),
            "api_info": identity and {"keystone": {"version": identity}},
        }
    )


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
