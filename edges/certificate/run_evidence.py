"""Derives the evidence of a certificate from the files of a run, or refuses the run by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.plugins.sla.evaluator import limits_of
from osbench.coordinator.report.exit_code import LIMITED, meaning
from osbench.coordinator.report.findings.load_bounds import GENERATOR
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.digests import (
    COVERED,
    DIGESTS,
    damaged_run,
    entry_of,
    listing,
)
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import SUMMARY, summary_of
from osbench.edges.certificate.canonical_json import canonical
from osbench.edges.certificate.recount import CountedWorkload, count_again
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.rejudged import JudgedWorkload, judged_again
from osbench.edges.certificate.sealed_statement import (
    GeneratorHost,
    RunEvidence,
    SealedCriterion,
    SealedFile,
    SealedWorkload,
)

N = TypeVar("N", int, float)

#: Files of a run whose digests are sealed: all that do not change once it is over.
SEALED = (*COVERED, DIGESTS)
#: Exit codes of runs whose load was the requested one.
SOUND = (0, 1, 5)


def evidence_of(directory: RunDirectory, plugins: Plugins) -> RunEvidence:
    """Return the evidence in the files of a finished run; counts and judges it again.

    Raises CertificateRefused with each reason why the run cannot be certified, as for damaged
    files, OsbenchError if a file cannot be read.
    """
    try:
        return _evidence(directory, plugins)
    except DamagedRun as error:
        raise CertificateRefused(
            f"{plain(error.problem, 2000)}; restore the files from a copy"
        ) from None
    except OSError as error:
        raise OsbenchError(
            f"cannot read run {directory.path.name}: {reason_of(error)}; make its files readable"
        ) from None
    except OsbenchError:
        raise
    # others may have written the files, and plug-ins read them
    except Exception as error:
        reason = plain(f"{type(error).__name__}: {error}", 200)
        raise CertificateRefused(
            f"run {directory.path.name} cannot be counted again: its files do not fit each other"
            f" ({reason})"
        ) from error


def _evidence(directory: RunDirectory, plugins: Plugins) -> RunEvidence:
    _require_end(directory)
    files = dict(sealed_files(directory.path))
    if problems := directory.files.problems():
        raise damaged_run(directory.path, problems)
    manifest, report = _read_report(directory)
    _require_soundness(report)
    counted = count_again(directory, plugins)
    if counted.disturbances:
        raise CertificateRefused.of(
            f"run {report.run_id} was disturbed", counted.disturbances, "Run the task again."
        )
    judged = judged_again(counted, report)
    for name in (SUMMARY, DIGESTS):
        # an exporter may have added a note
        if entry_of(directory.path / name)["sha256"] != files[name].sha256:
            raise CertificateRefused(f"{name} of run {report.run_id} has changed; certify it again")
    deployment = manifest.get("deployment")
    asked = {"deployment": deployment, "workloads": manifest["workloads"]}
    return RunEvidence(
        run_id=report.run_id,
        task=report.task,
        description=report.description,
        tags=report.tags,
        started_at=report.started_at,
        finished_at=report.finished_at,
        exit_code=report.code,
        exit_meaning=report.exit_meaning,
        osbench=str(manifest.get("osbench", "")),
        deployment=None if deployment is None else str(deployment),
        trace_store=str(manifest.get("trace_store") or ""),
        notes=report.notes,
        requested=tuple(manifest["workloads"]),
        fingerprint=hashlib.sha256(canonical(asked)).hexdigest(),
        workloads=tuple(_workload(*pair) for pair in zip(counted.workloads, judged, strict=True)),
        lag_limit_s=counted.lag_limit_s,
        hosts=tuple(_hosts(report)),
        changes=counted.changes,
        blocks=counted.blocks,
        rows=counted.rows,
        files=files,
    )


def _read_report(directory: RunDirectory) -> tuple[dict[str, Any], Report]:
    """Return run.json and the report. Raises CertificateRefused if they are of two runs."""
    manifest, summary = directory.read("run.json"), summary_of(directory)
    if manifest is None or summary is None:
        raise CertificateRefused(f"run {directory.path.name} has no run.json, or no report")
    report = Report.from_json(summary)
    if str(manifest.get("run_id")) != report.run_id:
        raise CertificateRefused(
            f"summary.json is of run {plain(report.run_id, 60)}, and run.json of run"
            f" {plain(str(manifest.get('run_id')), 60)}"
        )
    return manifest, report


def sealed_files(folder: Path) -> Iterator[tuple[str, SealedFile]]:
    """Yield name, size and SHA-256 of each file of a run that does not change once it is over.

    Raises OsbenchError if a file cannot be read.
    """
    for name in sorted(SEALED):
        try:
            entry = entry_of(folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OsbenchError(
                f"cannot read {folder / name}: {reason_of(error)}; restore it, or make it readable"
            ) from None
        yield name, SealedFile(**entry)


def _require_end(directory: RunDirectory) -> None:
    """Raise CertificateRefused unless the run is over for good, and has digests of its files."""
    name = directory.path.name
    if directory.has_coordinator():
        raise CertificateRefused(f"run {name} is still running; certify it when it is over")
    if not (directory.path / "run.json").exists():
        raise CertificateRefused(f"{directory.path} is not the directory of a run with a run.json")
    if not resumable.is_ended(directory) or (directory.path / resumable.PLAN).exists():
        remedy = (
            f"`osbench-coord resume {name}` ends it"
            if not resumable.refusal(directory)
            else "run the task again"
        )
        raise CertificateRefused(f"run {name} did not end; {remedy}")
    if not (directory.path / SUMMARY).exists() or listing(directory.path) is None:
        raise CertificateRefused(
            f"run {name} was made by an older osbench, which kept no digests of its files; run the"
            " task again"
        )


def _require_soundness(report: Report) -> None:
    """Raise CertificateRefused if the load was not the requested one, with the reasons."""
    name, reasons = report.run_id, [one for each in report.workloads for one in _losses(each)]
    if reasons or report.exit_code not in (*SOUND, LIMITED):
        raise CertificateRefused.of(
            f"run {name} ended with exit code {report.code}, so its load was not the requested one",
            reasons or [meaning(report.code)],
            "Run the task again.",
        )
    if report.is_limited:
        limits = [
            f"{plain(workload.name, 60)}: {plain(bound.sentence, 1000)}"
            for workload in report.workloads
            for bound in workload.bounds
            if bound.fault == GENERATOR
        ]
        raise CertificateRefused.of(
            f"run {name} was limited by its load generator, so its figures are not the service's",
            limits or [meaning(LIMITED)],
            "Add workers or hosts, and run the task again.",
        )


def _losses(workload: WorkloadReport) -> Iterator[str]:
    """Yield a message for each reason why the ledger of a workload cannot be certified."""
    sums, title = workload.accounting, plain(workload.name, 60)
    if workload.unbegun:
        yield f"{title} did not begin: {plain(workload.unbegun)}"
    if sums.lost:
        yield f"{title}: {count(sums.lost, 'lost iteration')}"
    if sums.reruns:
        yield f"{title}: {count(sums.reruns, 'iteration')} may have run twice"


def _workload(counted: CountedWorkload, judged: JudgedWorkload) -> SealedWorkload:
    report, search = judged.report, judged.report.search
    return SealedWorkload(
        name=report.name,
        subtask=report.subtask,
        scenario=report.scenario,
        targets=report.targets,
        # counts of messages, and parts of a search by traces, cannot be derived again
        accounting=replace(report.accounting, duplicates=0, refused=0),
        warmup=report.warmup,
        offered=report.offered,
        bounds=report.bounds,
        criteria=tuple(
            SealedCriterion(
                criterion=one.criterion,
                success=one.success,
                detail=one.detail,
                limits=one.limits,
                judged_again=one.criterion not in judged.reported_criteria,
            )
            for one in report.sla
        ),
        limits={one.name: limits_of(one.config) for one in counted.workload.sla},
        search=None if search is None else replace(search, grown_spans=(), traces=None),
        kind=report.kind,
        times={kind: report.times(kind) for kind in ("service", "response")},
        throughput=report.throughput,
    )


def _hosts(report: Report) -> Iterator[GeneratorHost]:
    by_host: dict[str, list[list[WorkerFigures]]] = {}
    for workload in report.workloads:
        for host in {worker.host for worker in workload.workers}:
            mine = [worker for worker in workload.workers if worker.host == host]
            by_host.setdefault(host, []).append(mine)
    for host, workloads in sorted(by_host.items()):
        workers = [worker for some in workloads for worker in some]
        yield GeneratorHost(
            host=host,
            processes=len({worker.incarnation.partition("+")[0] for worker in workers}),
            cores=_most(worker.cores for worker in workers),
            quota=_most(worker.quota for worker in workers),
            # workloads may be one after another
            cpu_mean=max(sum(worker.cpu_mean or 0.0 for worker in some) for some in workloads),
            osbench=tuple(sorted({worker.version for worker in workers if worker.version})),
            python=tuple(sorted({worker.python for worker in workers if worker.python})),
        )


def _most(values: Iterable[N | None]) -> N | None:
    return max((value for value in values if value is not None), default=None)
