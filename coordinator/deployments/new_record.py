"""Makes a new deployment record: from a file, from clouds.yaml, or from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from osbench.common.deployment.environment_record import (
    openstack_variables,
    profiling_of,
    spec_from_environment,
    unused_profiling,
)
from osbench.common.deployment.record import Deployment
from osbench.common.deployment.schema import DEFAULT_KEY, DEFAULT_KEY_WARNING
from osbench.common.errors import DeploymentError
from osbench.coordinator.deployments.named_cloud import named_cloud

#: Variables that are read where OS_CLOUD names a cloud.
_OF_CLOUD = {"OS_CLOUD", "OS_REGION_NAME", "OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"}


@dataclass(frozen=True, kw_only=True)
class NewRecord:
    """A new deployment record that was checked and is not yet stored, with notes for the user."""

    deployment: Deployment
    notes: tuple[str, ...] = ()


def from_file(name: str, path: Path) -> NewRecord:
    """Read a record named `name` from a file and check it. Raises DeploymentError if it is
    invalid.
    """
    return _checked(Deployment.from_file(name, path), str(path))


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
    return _checked(Deployment.from_spec(name, spec, source=source), source, notes)


def from_environment(name: str, environ: Mapping[str, str]) -> NewRecord:
    """Make a record from OS_* variables, or of the cloud that OS_CLOUD names, and check it.

    A note lists variables without effect. Raises DeploymentError if variables are missing or the
    record is invalid.
    """
    given = openstack_variables(environ)
    if "OS_CLOUD" in given:
        unused = _unused(sorted(given.keys() - _OF_CLOUD), " beside OS_CLOUD")
        return from_cloud(name, given["OS_CLOUD"], given.get("OS_REGION_NAME"), environ, unused)
    found = spec_from_environment(environ)
    made = Deployment.from_spec(name, found.spec, source="environment")
    notes = [_unused(found.unused)] if found.unused else []
    return _checked(made, "environment", (*notes, *unused_profiling(environ)))


def _unused(names: list[str] | tuple[str, ...], why: str = "") -> str:
    return f"not used{why}: {', '.join(names)}" if names else ""


def _checked(deployment: Deployment, source: str, notes: tuple[str, ...] = ()) -> NewRecord:
    """Load the auth plug-ins of a record to check their options; return the record with its notes.

    `source`: for messages. Raises DeploymentError with the problems of all plug-ins.
    """
    problems = []
    for place, credential in deployment.credentials.items():
        if credential.auth_type:
            # its loaders are slow to import, and a password needs none
            from osbench.common.openstack.login_plugins import load_plugin  # noqa: PLC0415

            try:
                load_plugin(credential.auth_type, credential.plugin_options())
            except DeploymentError as error:
                problems.append(f"  openstack.{place}: {error}")
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise DeploymentError(f"{source}: {count} to correct\n" + "\n".join(problems))
    if deployment.profiler_hmac_key == DEFAULT_KEY:
        notes = (*notes, DEFAULT_KEY_WARNING)
    return NewRecord(deployment=deployment, notes=notes)
