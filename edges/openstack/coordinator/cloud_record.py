"""Makes a new deployment record of a cloud: from clouds.yaml, or from the environment."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from osbench.common.deployment.record import Deployment
from osbench.common.deployment.service_catalogue import SERVICES
from osbench.common.errors import DeploymentError
from osbench.common.plugin.cloud_platform import NewRecord
from osbench.common.secrets.masking import error_text, mask_text
from osbench.coordinator.task.deployments.new_record import checked_record
from osbench.edges.openstack.common.api_version import ApiVersion, configured_service
from osbench.edges.openstack.common.login_plugins import loader_of, options_of
from osbench.edges.openstack.coordinator.environment_record import (
    openstack_variables,
    profiling_of,
    spec_from_environment,
    unused_profiling,
)

#: Variables that are read where OS_CLOUD names a cloud.
_OF_CLOUD = {"OS_CLOUD", "OS_REGION_NAME", "OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"}


def from_cloud(
    name: str, cloud: str, region: str | None, environ: Mapping[str, str], unused: str = ""
) -> NewRecord:
    """Make a record from a cloud of clouds.yaml and check it.

    `region`: None for the cloud's first. `environ`: has OSProfiler's key and store. `unused`: a
    further note, "" for none. Raises DeploymentError if the cloud is unknown or the record is
    invalid.
    """
    found = named_cloud(cloud, region)
    spec = {"openstack": {**found.spec["openstack"], **profiling_of(environ)}}
    source = f"cloud {cloud!r}"
    notes = (*found.notes, *([unused] if unused else []), *unused_profiling(environ))
    return checked_record(Deployment.from_spec(name, spec, source=source), source, notes)


def from_environment(name: str, environ: Mapping[str, str]) -> NewRecord:
    """Make a record from OS_* variables, or of the cloud that OS_CLOUD names, and check it.

    A note lists variables without effect. Raises DeploymentError if variables are missing or
    wrong, the cloud is unknown, or the record is invalid.
    """
    given = openstack_variables(environ)
    if "OS_CLOUD" in given:
        unused = _unused_note(sorted(given.keys() - _OF_CLOUD), " beside OS_CLOUD")
        return from_cloud(name, given["OS_CLOUD"], given.get("OS_REGION_NAME"), environ, unused)
    found = spec_from_environment(environ)
    made = Deployment.from_spec(name, found.spec, source="environment")
    notes = [_unused_note(found.unused)] if found.unused else []
    return checked_record(made, "environment", (*notes, *unused_profiling(environ)))


def _unused_note(names: list[str] | tuple[str, ...], why: str = "") -> str:
    return f"not used{why}: {', '.join(names)}" if names else ""


_EXTRA = (
    "clouds.yaml is read by openstacksdk, which is not installed: pip install 'osbench[openstack]'"
)

#: Warnings of openstacksdk on the contents of a file.
_TOLD = ("ConfigurationWarning", "OpenStackDeprecationWarning")


@dataclass(frozen=True, kw_only=True)
class NamedCloud:
    """A cloud of clouds.yaml as content of a deployment record, with openstacksdk's warnings."""

    #: Content of a record.
    spec: Mapping[str, Any]
    #: Warnings of openstacksdk, without secrets.
    notes: tuple[str, ...] = ()


def named_cloud(name: str, region: str | None = None) -> NamedCloud:
    """Read the cloud `name` from clouds.yaml, secure.yaml and clouds-public.yaml by openstacksdk.

    It searches its usual folders, OS_CLIENT_CONFIG_FILE and OS_CLIENT_SECURE_FILE for the files.
    `region`: of the cloud; None: its first. Raises DeploymentError, without secrets, if
    openstacksdk is not installed, a file is not YAML, or the cloud is unknown or invalid.
    """
    # only the command that makes a record needs it, and it is slow to import
    try:
        from openstack.config import loader  # noqa: PLC0415 - see above
    except ImportError:
        raise DeploymentError(_EXTRA) from None
    with warnings.catch_warnings(record=True) as warned, _skipped_files() as skipped:
        warnings.simplefilter("always")
        try:
            spec = _spec(_region_of(loader, name, region, skipped))
        except DeploymentError as error:
            notes = _notes(warned)
            raise DeploymentError(
                f"{error} ({'; '.join(notes)})" if notes else str(error)
            ) from None
    return NamedCloud(spec=spec, notes=_notes(warned))


def _notes(warned: list[warnings.WarningMessage]) -> tuple[str, ...]:
    # other warnings are about openstacksdk's releases
    told = [one for one in warned if one.category.__name__ in _TOLD]
    notes = [mask_text(" ".join(str(one.message).split())) for one in told]
    return tuple(dict.fromkeys(notes))


def _region_of(loader: Any, name: str, region: str | None, skipped: list[Any]) -> Any:
    config: Any = None
    try:
        config = loader.OpenStackConfig()
        _refuse(skipped)
        # without a file openstacksdk has a cloud from its defaults
        has_file = config.config_filename or config.secure_config_filename
        names = config.get_cloud_names() if has_file else []
        if name not in names:
            raise DeploymentError(_unknown_cloud(loader, config, name, names))
        return config.get_one(cloud=name, **({"region_name": region} if region else {}))
    except DeploymentError:
        raise
    except yaml.MarkedYAMLError as error:
        # some releases of openstacksdk skip such a file, others do not
        path = getattr(error.problem_mark, "name", "clouds.yaml")
        raise DeploymentError(_not_readable(path, error)) from None
    except Exception as error:  # noqa: BLE001 - openstacksdk raises what files lead to
        _refuse(skipped)
        reason = _login_problem(config, name) or _reason(error)
        raise DeploymentError(f"cloud {name!r}: {reason}; correct it in clouds.yaml") from None


def _login_problem(config: Any, name: str) -> str:
    """Return a message if the cloud's auth plug-in or an option of it is unknown; else ""."""
    try:
        found = config.get_one(cloud=name, validate=False).config
        options_of(loader_of(found["auth_type"], found["auth"]), found["auth_type"], found["auth"])
    except DeploymentError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - the first error stands
        return ""
    return ""


def _reason(error: Exception) -> str:
    missing = [option.dest for option in getattr(error, "options", ())]
    if missing:
        return f"needs {', '.join(map(repr, missing))} in 'auth'"
    if type(error).__module__.partition(".")[0] in ("openstack", "keystoneauth1"):
        return mask_text(str(error))
    return f"openstacksdk cannot read it: {error_text(error)}"


def _unknown_cloud(loader: Any, config: Any, name: str, names: list[str]) -> str:
    files = [one for one in (config.config_filename, config.secure_config_filename) if one]
    if not files:
        places = dict.fromkeys(str(Path(path).parent) for path in loader.CONFIG_FILES)
        given = os.environ.get("OS_CLIENT_CONFIG_FILE")
        also = f" (OS_CLIENT_CONFIG_FILE names {given}, which is not there)" if given else ""
        return f"there is no clouds.yaml in {', '.join(places)}{also}: cloud {name!r} is not known"
    close = difflib.get_close_matches(name, names, n=1)
    known = f"there are {', '.join(sorted(names))}" if names else "there is none"
    hint = f"did you mean {close[0]!r}?" if close else known
    return f"{' and '.join(files)}: no cloud has the name {name!r}; {hint}"


@contextlib.contextmanager
def _skipped_files() -> Iterator[list[Any]]:
    """Yield a list to which (path, error) of each file that openstacksdk skips is added.

    Its log lines, and stevedore's, are suppressed in the block: a line would repeat the text of a
    file that is not YAML, perhaps a password.
    """
    found: list[Any] = []

    class Collected(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.args, tuple) and len(record.args) == 2:
                found.append(record.args)

    # that of stevedore says less than our own messages
    logs: list[tuple[logging.Logger, logging.Handler]]
    logs = [(logging.getLogger("openstack.config"), Collected())]
    logs.append((logging.getLogger("stevedore"), logging.NullHandler()))
    passed_on = [log.propagate for log, _ in logs]
    try:
        for log, handler in logs:
            log.addHandler(handler)
            log.propagate = False
        yield found
    finally:
        for (log, handler), was in zip(logs, passed_on, strict=True):
            log.removeHandler(handler)
            log.propagate = was


def _refuse(skipped: list[Any]) -> None:
    if skipped:
        raise DeploymentError(_not_readable(*skipped[0]))


def _not_readable(path: object, error: object) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{path}: {place}is not YAML or JSON; correct it there"


def _spec(region: Any) -> dict[str, Any]:
    config = region.config
    auth = {key: value for key, value in config["auth"].items() if value is not None}
    auth_url = auth.pop("auth_url", "")
    verify, cert = region.get_requests_verify_args()
    cert, key = cert if isinstance(cert, tuple) else (cert, None)
    interface = region.get_interface()
    interface = interface[0] if isinstance(interface, list) else interface
    content = {
        "auth_url": auth_url,
        "admin": {"auth_type": config["auth_type"], "auth": auth},
        "region_name": region.get_region_name() or None,
        "endpoint_type": interface and interface.removesuffix("URL"),
        "https_insecure": verify is False,
        "https_cacert": verify if isinstance(verify, str) else None,
        "https_cert": cert,
        "https_key": key,
        "endpoint_overrides": _overrides(region),
        **_versions(region),
    }
    return {"openstack": {name: value for name, value in content.items() if value}}


def _overrides(region: Any) -> dict[str, str]:
    found = {}
    for service in SERVICES.values():
        for kind in service.types:
            # openstacksdk gives the address of Keystone for a login without scope, too
            address = region.get_endpoint(kind)
            if address and address != region.config["auth"].get("auth_url"):
                found[kind] = str(address)
    # of services that osbench has no name for
    ending = "_endpoint_override"
    for key, value in region.config.items():
        kind = key.removesuffix(ending).replace("_", "-")
        if key.endswith(ending) and value and kind not in found:
            found[kind] = str(value)
    return found


def _versions(region: Any) -> dict[str, Any]:
    """Return `api_versions` for osbench's plug-ins, and `api_info` (major versions) for Rally's.

    openstacksdk's defaults are left out. Raises DeploymentError for a version that osbench cannot
    select.
    """
    from openstack.config import defaults  # noqa: PLC0415 - an optional dependency

    usual = defaults.get_defaults()
    versions: dict[str, Any] = {}
    for name, service in SERVICES.items():
        # clouds.yaml says volume for what the catalogue calls block-storage
        names = (*service.types, *(["volume"] if name == "cinder" else []))
        kind = service.types[0]
        version = region.get_api_version(kind) or ""
        if version == usual.get(f"{kind.replace('-', '_')}_api_version"):
            version = ""
        version = region.get_default_microversion(kind) or version
        configured = (region.config.get(f"{one.replace('-', '_')}_service_type") for one in names)
        wish = {"version": version, "service_type": next(filter(None, configured), "")}
        wish = {key: str(value) for key, value in wish.items() if value}
        if wish:
            configured_service(service, ApiVersion(**wish))
            versions[name] = wish
    majors = {
        name: {**wish, "version": wish["version"].partition(".")[0]}
        for name, wish in versions.items()
        if "version" in wish
    }
    return {"api_versions": versions, "api_info": majors}
