"""Checks a new deployment record, and reads one from a file."""

from __future__ import annotations

from pathlib import Path

from osbench.common.deployment.record import Deployment
from osbench.common.deployment.schema import DEFAULT_KEY, DEFAULT_KEY_WARNING
from osbench.common.errors import DeploymentError
from osbench.common.plugin.cloud_platform import NewRecord, cloud_of


def record_of_file(name: str, path: Path) -> NewRecord:
    """Return the checked record `name` of a file. Raises DeploymentError if it is invalid."""
    return checked_record(Deployment.from_file(name, path), str(path))


def checked_record(deployment: Deployment, source: str, notes: tuple[str, ...] = ()) -> NewRecord:
    """Check the credentials of a record without a request; return the record with its notes.

    A default profiler key adds a note. `source`: for messages. Raises DeploymentError with the
    problems of all credentials.
    """
    cloud = cloud_of(deployment)
    problems = cloud.record_problems(deployment) if cloud is not None else []
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise DeploymentError(f"{source}: {count} to correct\n{lines}")
    if deployment.profiler_hmac_key == DEFAULT_KEY:
        notes = (*notes, DEFAULT_KEY_WARNING)
    return NewRecord(deployment=deployment, notes=notes)
