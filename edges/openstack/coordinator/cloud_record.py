"""Makes a new deployment record of a cloud: from clouds.yaml, or from the environment."""

from __future__ import annotations

from collections.abc import Mapping

from osbench.common.deployment.record import Deployment
from osbench.common.plugin.cloud_platform import NewRecord
from osbench.coordinator.task.deployments.new_record import checked_record
from osbench.edges.openstack.coordinator.environment_record import (
    openstack_variables,
    profiling_of,
    spec_from_environment,
    unused_profiling,
)
from osbench.edges.openstack.coordinator.named_cloud import named_cloud

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

    A note lists variables without effect. Raises DeploymentError if variables are missing or the
    record is invalid.
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
