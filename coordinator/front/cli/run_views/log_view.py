"""The output of `logs`: lines that the workers of a run printed and logged."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping

from osbench.common.errors import UsageError
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count, plain, timestamp
from osbench.coordinator.front.cli.base import echo
from osbench.coordinator.results.storage.progress import worker_title
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.worker_log import LogEntry, WorkerLog

#: Between two looks at a run that goes on, seconds.
LOOK_S = 0.5


class WorkerNames:
    """Maps memberships of a run to titles of worker processes: label (host:pid).

    A membership is one worker process's part in the run.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self._labels = _labels(directory)

    def __call__(self, membership: str) -> str:
        """Return the title of a worker process: label (host:pid), or host:pid."""
        name = _host_and_pid(membership)
        return worker_title(name, self._labels.get(name, ""))

    def fits(self, wanted: str, membership: str) -> bool:
        """Return whether `wanted` means the worker process of a membership.

        `wanted` is a label, host, host:pid or the beginning of an incarnation, host.pid.random.
        """
        name = _host_and_pid(membership)
        host = name.rpartition(":")[0]
        return wanted in (name, host, self._labels.get(name)) or membership.startswith(wanted)


def show_log(directory: RunDirectory, *, worker: str | None, follow: bool, as_json: bool) -> None:
    """Print the log entries of a run, as text or JSON lines.

    `worker`: only entries of this label, host, host:pid or incarnation. `follow`: go on until the
    run ends. The count of entries that were cut goes to stderr. Raises UsageError if no such worker
    has written anything.
    """
    log, names = WorkerLog(directory), WorkerNames(directory)
    render = _as_json if as_json else _as_text
    workloads = _names(directory)
    seen: set[str] = set()
    for entry in _entries(log, directory, follow=follow):
        seen.add(entry.worker)
        if worker is None or names.fits(worker, entry.worker):
            echo(render(entry, names, workloads))
    writers = sorted(map(names, seen | log.cut.keys()))
    wanted = [one for one in seen | log.cut.keys() if worker is None or names.fits(worker, one)]
    if worker is not None and not wanted:
        others = f"choose from {', '.join(map(plain, writers))}" if writers else "no worker did"
        raise UsageError(f"worker {worker!r} of run {directory.path.name} wrote no log; {others}")
    for one in sorted(wanted):
        if log.cut[one]:
            text = (
                f"{count(log.cut[one], 'entry', 'entries')} of {plain(names(one))} not kept whole"
            )
            echo(f"Note: {text}: too many, or too long", err=True)
    if not seen:
        echo(f"the workers of run {directory.path.name} wrote no log", err=True)


def entry_lines(entry: LogEntry, prefix: str) -> str:
    """Return an entry as text behind `prefix`, escaped; lines after the first are indented."""
    return f"{prefix}{escaped(entry.text.rstrip(), breaks=True)}".replace("\n", "\n    ")


def _entries(log: WorkerLog, directory: RunDirectory, *, follow: bool) -> Iterator[LogEntry]:
    going_on = True
    while going_on:
        # looked at first: what comes last is read in any case
        going_on = follow and directory.has_coordinator()
        yield from log.fresh()
        if going_on:
            time.sleep(LOOK_S)


def _as_json(entry: LogEntry, names: Callable[[str], str], workloads: Mapping[int, str]) -> str:
    shown = {**dataclasses.asdict(entry), "worker": names(entry.worker)}
    inside = entry.workload >= 0
    shown |= {
        "workload": entry.workload if inside else None,
        "name": workloads.get(entry.workload),
        "iteration": entry.iteration if inside else None,
    }
    return json.dumps(shown)


def _as_text(entry: LogEntry, names: Callable[[str], str], workloads: Mapping[int, str]) -> str:
    place = ""
    if entry.workload >= 0:
        name = workloads.get(entry.workload, f"workload {entry.workload}")
        place = f" {plain(name)} {entry.iteration}"
    prefix = f"{timestamp(entry.at)} {plain(names(entry.worker))}{place} {plain(entry.source)}: "
    return entry_lines(entry, prefix)


def _names(directory: RunDirectory) -> dict[int, str]:
    asked = (directory.read("run.json") or {}).get("workloads", ())
    return {number: str(one.get("name", one["scenario"])) for number, one in enumerate(asked)}


def _host_and_pid(membership: str) -> str:
    """A name of another form than host.pid.random is returned as it is."""
    parts = membership.partition("+")[0].rsplit(".", 2)
    return f"{parts[0]}:{parts[1]}" if len(parts) == 3 else membership


def _labels(directory: RunDirectory) -> dict[str, str]:
    summary = directory.read("summary.json") or {}
    found = {
        f"{one.get('host')}:{one.get('pid')}": str(one.get("label") or "")
        for workload in summary.get("workloads", ())
        for one in workload["workers"]
    }
    status = directory.read("status.json") or {}
    for row in status.get("rows", ()):
        found.setdefault(str(row["name"]), str(row["label"]))
    return found
