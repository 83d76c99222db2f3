"""The sealer's part of a certificate: versions, host, task file and sources of the scenarios."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import platform
from collections.abc import Iterator
from pathlib import Path

from osbench import __version__
from osbench.common.errors import OsbenchError, UsageError
from osbench.common.files.regular_files import read_regular
from osbench.common.plugin.plugins import Plugins
from osbench.common.ports import clock as time
from osbench.common.task import Task
from osbench.coordinator.formatting import plain, timestamp
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.run_documents import describe
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.rejudged import short_value, unequal_parts
from osbench.edges.certificate.sealed_statement import RunEvidence, Seal
from osbench.edges.certificate.signing_key import PublicKey

#: Largest task file, bytes.
_TASK_BYTES = 16 << 20
#: Differences that a message names.
_NAMED = 3


def seal_of(
    evidence: RunEvidence, key: PublicKey, plugins: Plugins, task_file: Path | None = None
) -> Seal:
    """Return the sealer's words about a run: present time, versions, and digests of its sources.

    `task_file`: a file that `require_same_task` has accepted; None for none. Raises UsageError if
    it cannot be read.
    """
    return Seal(
        sealed_at=timestamp(time.time()),
        public_key=key.raw.hex(),
        osbench=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        machine=_processor(),
        osprofiler=_version("osprofiler"),
        task_file="" if task_file is None else task_file.name,
        task_sha256="" if task_file is None else file_sha256(task_file),
        scenarios=dict(_sources(evidence, plugins)),
    )


def file_sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a task file. Raises UsageError if it cannot be read."""
    try:
        return hashlib.sha256(read_regular(path, _TASK_BYTES)).hexdigest()
    except OSError as error:
        raise UsageError(
            f"cannot read the task file {path}: {reason_of(error)}; give the file of the run"
        ) from None


def require_same_task(evidence: RunEvidence, task: Task, plugins: Plugins) -> None:
    """Raise CertificateRefused unless `task` is the task of the run, secrets aside."""
    described = describe(evidence.run_id, 0.0, task, [], plugins, None)
    differences = [
        f"{path.removeprefix('.')}: the run has {short_value(one)}, the file {short_value(other)}"
        for path, one, other in unequal_parts(list(evidence.requested), described["workloads"])
    ]
    if differences:
        raise CertificateRefused.of(
            f"{plain(task.source)} is not the task of run {evidence.run_id}",
            differences[:_NAMED],
            "Give the file and the --task-args of the run.",
        )


def _sources(evidence: RunEvidence, plugins: Plugins) -> Iterator[tuple[str, str]]:
    """Yield each scenario and the digest of its source here; "" if it is not here."""
    for name in sorted({one.scenario for one in evidence.workloads}):
        digest = ""
        with contextlib.suppress(OsbenchError):
            digest = plugins.scenario(name).source_hash
        yield name, digest


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    """Return model and architecture of this host's processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name":
                return f"{plain(model)} ({platform.machine()})"
    return platform.machine()
