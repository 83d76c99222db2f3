"""Verifies a certificate: by itself, by a public key that is known, and by the files of its run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from osbench import __version__
from osbench.common.errors import OsbenchError
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import read_regular, size_of
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.findings.load_bounds import GENERATOR
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.results.storage.digests import entry_of
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_log import LOG
from osbench.edges.certificate.certificate_file import Certificate
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.rejudged import short_value, unequal_parts
from osbench.edges.certificate.run_evidence import SEALED, SOUND, evidence_of
from osbench.edges.certificate.sealed_statement import RunEvidence, SealedWorkload
from osbench.edges.certificate.signing_key import PublicKey

#: Files without which nothing can be counted.
_NEEDED = ("run.json", "journal", "blocks", "timeline", "summary.json", "digests.json")
#: Files of a run directory that belong to its host, and change.
_OF_HOST = frozenset((LOG, "lock", "reserve", "contexts", "controls", "traces"))
#: Largest run.json that is read for its id: bytes, and values.
_MANIFEST_BYTES, _MOST_VALUES = 64 << 20, 5_000_000
#: Differences that a message names.
_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The checks that a certificate has passed."""

    certificate: Certificate
    #: The public key was given by the verifier.
    is_known_key: bool
    #: The files of the run have the sealed digests, and give the sealed figures again.
    has_files: bool
    #: The task file has the sealed digest.
    has_task: bool


def verify(
    certificate: Certificate,
    *,
    key: PublicKey | None = None,
    directory: RunDirectory | None = None,
    plugins: Plugins | None = None,
    task_sha256: str = "",
) -> Verified:
    """Verify a certificate whose signature holds; returns the passed checks.

    `key`: the public key of the expected sealer. `directory`: the files of its run, whose figures
    are derived again with `plugins`. `task_sha256`: of the task file. Raises CertificateRefused
    that names each fault.
    """
    evidence, seal = certificate.evidence, certificate.seal
    if key is not None and key != certificate.key:
        raise CertificateRefused(
            f"the certificate was sealed by another key: {certificate.key.fingerprint}, and the"
            f" given public key is {key.fingerprint}"
        )
    if contradictions := list(_contradictions(evidence)):
        raise CertificateRefused.of("the certificate contradicts itself", contradictions)
    if task_sha256 and task_sha256 != seal.task_sha256:
        known = seal.task_sha256 or "none"
        raise CertificateRefused(
            f"the task file is not the sealed one: its SHA-256 is {task_sha256}, sealed is {known}"
        )
    if directory is not None:
        _compare(evidence, directory, Plugins() if plugins is None else plugins, seal.osbench)
    return Verified(
        certificate=certificate,
        is_known_key=key is not None,
        has_files=directory is not None,
        has_task=bool(task_sha256),
    )


def _contradictions(evidence: RunEvidence) -> Iterator[str]:
    """Yield a message for each statement that `certify` would not have sealed."""
    for name in _NEEDED:
        if name not in evidence.files:
            yield f"it has no digest of the file {name}"
    for name in sorted(evidence.files.keys() - set(SEALED)):
        yield f"it has a digest of {plain(name, 60)}, which is not a file of a run"
    if evidence.exit_code not in SOUND:
        yield f"the run ended with exit code {evidence.exit_code}"
    if not evidence.workloads:
        yield "it has no workload"
    if len(evidence.workloads) != len(evidence.requested):
        yield "it has other workloads than the task"
    for workload in evidence.workloads:
        for fault in _faults(workload):
            yield f"{plain(workload.name, 60)}: {fault}"
    missed = not all(one.is_met for one in evidence.workloads)
    stopped = any(one.offered.cut_short for one in evidence.workloads)
    if (missed and evidence.exit_code != 1) or (evidence.exit_code == 1 and not missed | stopped):
        state = "missed" if missed else "met"
        yield f"its criteria are {state}, and the exit code is {evidence.exit_code}"


def _faults(workload: SealedWorkload) -> Iterator[str]:
    sums = workload.accounting
    if sums.settled != sums.planned:
        yield f"{sums.planned} planned iterations are not the sum of their states, {sums.settled}"
    if sums.lost or sums.reruns:
        yield f"lost iterations: {sums.lost}; iterations that may have run twice: {sums.reruns}"
    if sum(sums.drops.values()) != sums.dropped:
        yield "dropped arrivals are not the sum of their reasons"
    if any(bound.fault == GENERATOR for bound in workload.bounds):
        yield "the load generator was the limit"
    search = workload.search
    if search is not None:
        if search.limit:
            yield "the load generator was the limit of the search"
        known = [one for one in (search.low, search.rate, search.high) if one is not None]
        if known != sorted(known):
            yield "the interval of the capacity does not contain it"
    for kind, times in workload.times.items():
        places = [times.min, times.p50, times.p90, times.p95, times.p99, times.p999, times.max]
        there = [one for one in places if one is not None]
        if there != sorted(there):
            yield f"percentiles of {plain(kind, 20)} time do not ascend"


def _compare(evidence: RunEvidence, directory: RunDirectory, plugins: Plugins, sealer: str) -> None:
    """Raise CertificateRefused unless the run's files are sealed and give the sealed figures."""
    try:
        faults = list(_changed_files(evidence, directory.path))
        found = _run_of(directory)
        if found and found != evidence.run_id:
            raise CertificateRefused(
                f"the certificate is of run {plain(evidence.run_id, 60)}, and these are the files"
                f" of run {plain(found, 60)}"
            )
        if faults:
            raise CertificateRefused.of("the files of the run are not the sealed ones", faults)
        again = evidence_of(directory, plugins)
    except CertificateRefused:
        raise
    except OsbenchError as error:
        raise CertificateRefused(f"the run cannot be counted again: {error}") from None
    sealed, derived = json_codec.to_json(evidence), json_codec.to_json(again)
    differences = [
        f"{path.removeprefix('.')}: sealed {short_value(one)}, found {short_value(other)}"
        for path, one, other in unequal_parts(sealed, derived)
    ]
    if differences:
        more = [f"and {len(differences) - _NAMED} more"] * (len(differences) > _NAMED)
        raise CertificateRefused.of(
            "sealed figures do not follow from the files of the run",
            [*differences[:_NAMED], *more],
            _version_advice(evidence, sealer),
        )


def _run_of(directory: RunDirectory) -> str:
    """Return the id in run.json; "" if that cannot be read."""
    try:
        found = read_json(read_regular(directory.path / "run.json", _MANIFEST_BYTES), _MOST_VALUES)
        return str(found["run_id"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _changed_files(evidence: RunEvidence, folder: Path) -> Iterator[str]:
    """Yield a phrase for each file that is missing, added, cut or changed."""
    if not folder.is_dir():
        raise CertificateRefused(f"{folder} is not a folder with the files of a run")
    for name, sealed in sorted(evidence.files.items()):
        try:
            size = size_of(folder / name)
            # a file of another size is not read
            found = entry_of(folder / name)["sha256"] if size == sealed.bytes else ""
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            yield f"{name} {'is missing' if missing else f'cannot be read: {reason_of(error)}'}"
            continue
        if size != sealed.bytes:
            yield f"{name} was changed: it has {size:,} of {sealed.bytes:,} bytes"
        elif found != sealed.sha256:
            yield f"{name} was changed: its SHA-256 is {found}, sealed is {sealed.sha256}"
    added = {path.name for path in folder.iterdir()} - _OF_HOST
    added |= {f"{path.parent.name}/{path.name}" for path in folder.glob("traces/*")}
    for name in sorted(added - evidence.files.keys()):
        yield f"{plain(name, 60)} was added"


def _version_advice(evidence: RunEvidence, sealer: str) -> str:
    versions = {evidence.osbench, sealer}
    if versions == {__version__}:
        return ""
    named = " and ".join(sorted(plain(one, 40) for one in versions))
    return (
        f"They were computed by osbench {named}, this is {__version__}: verify with that version."
    )
