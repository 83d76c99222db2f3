"""Finished runs as comparisons read them, with ids by which repetitions are found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osbench.common.errors import DamagedRun, OsbenchError, UsageError, WrongDocument
from osbench.coordinator.formatting import distinct
from osbench.coordinator.report.exit_code import AROUND
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import (
    SUMMARY_FORMAT,
    read_timeline,
    summary_of,
)
from osbench.edges.history.archives.run_archive import ArchivedRun

#: Exit codes of runs with the requested load, unless they have a bound of the generator.
_SOUND = (0, 1, AROUND)
#: Hexadecimal digits of a fingerprint.
_DIGITS = 12


def is_sound(report: Report) -> bool:
    """Return whether a run had the requested load, by exit code and bounds of the generator."""
    return report.exit_code in _SOUND and not report.is_limited


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedRun:
    """A finished run, local or archived: its request (run.json), summary and timeline."""

    #: run.json: the request for the run.
    manifest: Mapping[str, Any]
    #: `report` as a JSON object: summary.json.
    summary: Mapping[str, Any]
    #: Its numbers over time; None if the run has none.
    timeline: Mapping[str, Any] | None = None
    #: Location of its traces; None if it is not known.
    directory: RunDirectory | None = None
    #: The run of an archive that it is; its files are fetched when they are needed.
    archived: ArchivedRun | None = None

    @cached_property
    def files(self) -> RunDirectory | None:
        """Run directory with the traces; files of an archived run are fetched at the first use.

        None if it is not known, or if the files cannot be fetched, which the archive warns about.
        """
        return self.directory if self.archived is None else self.archived.fetch_or_warn()

    @property
    def may_have_traces(self) -> bool:
        """Return whether the run's files may contain traces.

        False only for archived runs whose record lists none.
        """
        return self.archived is None or self.archived.record.has_traces

    @cached_property
    def report(self) -> Report:
        """Report of the run, cached. Raises DamagedRun if summary.json has another form."""
        return Report.from_json(self.summary)

    @property
    def run_id(self) -> str:
        """Id of the run. Raises DamagedRun as `report`."""
        return self.report.run_id

    @property
    def exit_code(self) -> int:
        """Exit code of the run; 0 if the report has none."""
        return self.report.exit_code or 0

    @property
    def is_sound(self) -> bool:
        """Return whether it has the figures of the requested load."""
        return is_sound(self.report)

    @property
    def is_limited(self) -> bool:
        """Return whether the load generator was the limit, or may be why a criterion failed."""
        return self.report.is_limited

    @property
    def deployment(self) -> str | None:
        """Name of the run's deployment record; None if it had none."""
        return self.manifest.get("deployment")

    @cached_property
    def workloads(self) -> dict[str, WorkloadReport]:
        """Workloads of the report by name; equal names get an index from 0: `name [0]`."""
        return dict(zip(self._names, self.report.workloads, strict=True))

    @cached_property
    def times(self) -> dict[str, Mapping[str, Any]]:
        """Workloads of the timeline by the names of `workloads`; {} without a timeline."""
        if self.timeline is None:
            return {}
        return dict(zip(self._names, self.timeline["workloads"], strict=False))

    @cached_property
    def asked(self) -> dict[str, Mapping[str, Any]]:
        """Requested configuration of each workload, from run.json, by the names of `workloads`."""
        return dict(zip(self._names, self.manifest.get("workloads", []), strict=False))

    @cached_property
    def _names(self) -> list[str]:
        return distinct([workload.name for workload in self.report.workloads])

    @cached_property
    def fingerprint(self) -> str:
        """Id that is equal for runs of the same task, load, deployment and number of workers.

        It has the first 12 hexadecimal digits of a SHA-256. Used to find repetitions of a run.
        """
        return self._digest(lambda runner: runner, workers=True)

    @cached_property
    def kinship(self) -> str:
        """Id that is equal also for runs with different loads of the same type of runner.

        Numbers of workers may differ, too: a load of one virtual user has one worker.
        """
        return self._digest(lambda runner: sorted(runner or ()), workers=False)

    def _digest(self, load: Callable[[Any], Any], *, workers: bool) -> str:
        essence = {
            "deployment": self.deployment,
            "workloads": [
                [
                    name,
                    {
                        key: load(asked.get(key)) if key == "runner" else asked.get(key)
                        for key in _ASKED
                    },
                    [[one.name, one.config] for one in self.workloads[name].contexts],
                    *([len(self.workloads[name].workers)] if workers else []),
                ]
                for name, asked in self.asked.items()
            ],
        }
        text = json.dumps(essence, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


#: Fields of a workload's description that determine its load.
_ASKED = ("scenario", "scenario_source", "args", "args_from", "runner", "warmup")


def read_compared_run(directory: RunDirectory) -> ComparedRun:
    """Read the finished run of a directory, with its timeline.

    Raises UsageError if the run has not finished or its summary has another format, OsbenchError if
    a file cannot be read, DamagedRun if one is cut, changed or of another form.
    """
    name = directory.path.name
    summary = summary_of(directory)
    if summary is None:
        raise UsageError(
            f"run {name} has no results to compare; name a finished run: `osbench-coord status "
            f"{name}` says why it is not"
        )
    return _require_shape(
        ComparedRun(
            manifest=directory.read("run.json") or {},
            summary=summary,
            timeline=read_timeline(directory),
            directory=directory,
        )
    )


def finished_runs(
    data_dir: str,
    tags: tuple[str, ...] = (),
    *,
    left_out: Callable[[str], None] | None = None,
    unsound: Callable[[ComparedRun], None] | None = None,
    among: Iterable[RunDirectory] | None = None,
    archived: Iterable[ArchivedRun] = (),
) -> Iterator[ComparedRun]:
    """Yield the finished runs whose load was the requested one, oldest first; without timelines.

    `tags`: only runs with all of these tags. `among`: the local runs to consider, None: all of
    `data_dir`. `archived`: runs of an archive to add, unless they are local, too. `left_out` is
    called with the reason if a run cannot be read; for None, DamagedRun is raised for files that
    are cut or changed, and other unreadable runs are skipped. `unsound` is called with each run
    whose load was another.
    """
    here = {one.path.name: one for one in (RunDirectory.all(data_dir) if among is None else among)}
    there = {one.run_id: one for one in archived if one.run_id not in here}
    for name in sorted((*here, *there)):
        try:
            found = _of_archive(there[name]) if name in there else _of_directory(here[name])
        except DamagedRun as error:
            if left_out is None:
                raise
            left_out(f"left out: {error}")
            continue
        except OsbenchError as error:
            if left_out is not None:
                left_out(f"left out: {error}")
            continue
        if found is None:
            continue
        if not set(tags) <= set(found.summary["tags"]):
            continue
        if found.is_sound:
            yield found
        elif unsound is not None:
            unsound(found)


def _of_directory(directory: RunDirectory) -> ComparedRun | None:
    summary, manifest = summary_of(directory), directory.read("run.json")
    if not summary or not manifest:
        return None
    return _require_shape(ComparedRun(manifest=manifest, summary=summary, directory=directory))


def _of_archive(one: ArchivedRun) -> ComparedRun | None:
    summary = one.record.summary
    if summary is None:
        return None
    if summary.get("format") != SUMMARY_FORMAT:
        raise UsageError(
            f"run {one.run_id} of {one.archive.place} has a summary of format"
            f" {summary.get('format')}, and this osbench reads {SUMMARY_FORMAT}; read it with the "
            "osbench that wrote it"
        )
    if summary.get("run_id") != one.run_id:
        raise WrongDocument(
            f"summary.json of run {one.run_id} of {one.archive.place} is of another run; push the "
            "run again"
        )
    return _require_shape(ComparedRun(manifest=one.record.manifest, summary=summary, archived=one))


def _require_shape(run: ComparedRun) -> ComparedRun:
    """Return the run; raise DamagedRun if its report or its request has another shape."""
    name, asked = run.report.run_id, run.manifest.get("workloads", [])
    if not isinstance(asked, list) or not all(isinstance(one, Mapping) for one in asked):
        raise WrongDocument(f"run.json of run {name} is damaged: expected objects as workloads")
    return run


def earlier_runs(
    data_dir: str,
    compared: list[ComparedRun],
    most: int = 50,
    *,
    left_out: Callable[[str], None] | None = None,
    archived: Iterable[ArchivedRun] = (),
) -> list[ComparedRun]:
    """Return other runs of `finished_runs` with the fingerprint of a compared run, oldest first.

    Only the newest `most` of them. `left_out` and `archived` as in `finished_runs`, and DamagedRun
    is raised likewise.
    """
    wanted = {one.fingerprint for one in compared}
    known = {one.run_id for one in compared}
    found = [
        one
        for one in finished_runs(data_dir, left_out=left_out, archived=archived)
        if one.run_id not in known and one.fingerprint in wanted
    ]
    return found[-most:]
