"""Imports Rally's results as runs, from `rally task report --json` (format_version 1.*).

An imported run can be shown, exported and compared like any other. Rally reports neither scheduled
times of iterations nor the requested load: an iteration counts as scheduled when it started.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack

from osbench import __version__
from osbench.common.errors import UsageError
from osbench.common.files.foreign_json import read_json
from osbench.common.files.named_files import expanded, read_text
from osbench.common.plugin.atomic import Names
from osbench.common.plugin.plugin_names import RALLY
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Row, encode_rows, pack_actions, row
from osbench.common.protocol.messages import Block
from osbench.common.secrets.masking import mask
from osbench.common.task import Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.contexts.history import ContextRecord, ContextStep, Fault
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.report.exit_code import exit_code
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Offered, Tracing
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage import digests
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_summary, write_timeline

#: Iterations of a block.
ROWS = 5000
#: What the report calls the worker: Rally says nothing of its processes.
WORKER = "rally"
#: Exceptions of Rally's by which an iteration ends at its timeout.
_TIMEOUTS = frozenset(("ThreadTimeoutException", "TimeoutException"))

#: Largest file, bytes.
_LARGEST = 512 << 20

_OLD = (
    "holds results in the format before Rally 0.10: read it with `rally task import --file` and "
    "write it with `rally task report --json`"
)
_FOREIGN = "is not a result of `rally task report --json`"


def import_file(path: Path, data_dir: str, lag_limit_s: float) -> list[str]:
    """Make a run in the data directory of every task in a file from Rally; return their ids.

    If one fails, none is made. `lag_limit_s`: lag, seconds, above which the load generator counts
    as too slow. Raises UsageError if the file cannot be read or is in another format, or a task in
    it was imported before; another OsbenchError if a run cannot be stored.
    """
    made: list[RunDirectory] = []
    try:
        for task in _tasks(path):
            made.append(_new_directory(path, task, data_dir))
            with contextlib.closing(made[-1]) as directory:
                _import(path, task, directory, lag_limit_s)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        _undo(made)
        why = " ".join(f"{type(error).__name__} {error}".split())[:200]
        raise UsageError(f"{path} {_FOREIGN}: {why}; export it with that command") from None
    except BaseException:
        _undo(made)
        raise
    return [one.path.name for one in made]


def _undo(made: Sequence[RunDirectory]) -> None:
    """Delete the directories of the runs made so far: all tasks are imported, or none."""
    for one in made:
        shutil.rmtree(one.path, ignore_errors=True)


def _tasks(path: Path) -> list[dict[str, Any]]:
    try:
        document = read_json(read_text(expanded(path), _LARGEST))
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; give a file that can be read"
        ) from None
    except ValueError as error:
        raise UsageError(
            f"{path} is not JSON: {error}; export it again with `rally task report --json`"
        ) from None
    if isinstance(document, list):
        raise UsageError(f"{path} {_OLD}")
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list) or not tasks:
        raise UsageError(f"{path} {_FOREIGN}: it has no tasks; export it with that command")
    return tasks


def _new_directory(path: Path, task: Mapping[str, Any], data_dir: str) -> RunDirectory:
    """Create the run directory of a task, whose id is made from the task's time and UUID.

    So a second import finds it: raises UsageError if it exists.
    """
    digest = hashlib.sha256(str(task["uuid"]).encode()).hexdigest()[:4]
    begun = datetime.fromtimestamp(_timestamp(task["created_at"]), UTC)
    run_id = begun.strftime("%Y%m%d-%H%M%S-") + digest
    if RunDirectory.of(data_dir, run_id).path.exists():
        raise UsageError(
            f"{path}: task {task['uuid']} was imported before, as run {run_id}; delete that run "
            "first to import it again"
        )
    return RunDirectory.create(data_dir, run_id)


def _import(
    path: Path, task: Mapping[str, Any], directory: RunDirectory, lag_limit_s: float
) -> None:
    pairs = [(part, one) for part in task["subtasks"] for one in part["workloads"]]
    outcomes = tuple(
        _outcome(directory, number, part, one) for number, (part, one) in enumerate(pairs)
    )
    report = RunOutcome(
        run_id=directory.path.name,
        title=str(task["title"]),
        description=str(task.get("description", "")),
        tags=tuple(map(str, task["tags"])),
        started_at=_timestamp(task["created_at"]),
        finished_at=_timestamp(task["updated_at"]),
        exit_code=exit_code(
            broken=False,
            interrupted=False,
            aborted=task["status"] != "finished",
            accountings=[one.accounting for one in outcomes],
            limited=False,
            verdicts=[verdict for one in outcomes for verdict in one.verdicts],
        ),
        workloads=outcomes,
        notes=tuple(_notes(path, task, [one for _, one in pairs])),
    )
    summary = measured_report(report).to_json()
    directory.write("run.json", _manifest(path, task, report, [one for _, one in pairs]))
    write_timeline(
        directory, {"complete": True, **to_timeline(report, summary, lag_limit_s)}, sync=False
    )
    write_summary(directory, summary)


def _notes(
    path: Path, task: Mapping[str, Any], workloads: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    yield f"imported from Rally: task {task['uuid']} of {path.name}"
    hooks = sum(len(one.get("hooks", ())) for one in workloads)
    if hooks:
        yield f"the results of {hooks} {'hook' if hooks == 1 else 'hooks'} were not imported"


def _manifest(
    path: Path,
    task: Mapping[str, Any],
    report: RunOutcome,
    workloads: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    return {
        "run_id": report.run_id,
        "osbench": __version__,
        "digests": digests.FORMAT,
        "started_at": report.started_at,
        "task": report.title,
        "description": report.description,
        "source": str(path),
        "tags": list(report.tags),
        "deployment": task.get("env_name") or None,
        "workloads": [_workload_document(one) for one in workloads],
    }


def _workload_document(workload: Mapping[str, Any]) -> dict[str, Any]:
    ((name, args),) = workload["scenario"].items()
    return {
        "scenario": name,
        "scenario_source": RALLY,
        "args": mask(args),
        "runner": mask(workload["runner"]),
        "sla": mask(workload["sla"]),
        "idempotent": False,
        "warmup": 0.0,
        "args_from": "",
    }


def _outcome(
    directory: RunDirectory, number: int, subtask: Mapping[str, Any], workload: Mapping[str, Any]
) -> WorkloadOutcome:
    ((name, _),) = workload["scenario"].items()
    ((runner, config),) = workload["runner"].items()
    data = sorted(workload["data"], key=lambda one: one["timestamp"])
    t0_at = float(data[0]["timestamp"]) if data else 0.0
    results = _results(directory, number, data, t0_at)
    statistics = results.statistics
    duration_s = (statistics.last_end or 0) / 1e9
    closed = runner != "rps"
    return WorkloadOutcome(
        name=name,
        scenario=name,
        source=RALLY,
        title=str(subtask["title"]),
        subtask_description=str(subtask.get("description", "")),
        position=int(workload["position"]),
        description=str(workload.get("description", "")),
        runner=Named(name=runner, config=config),
        begun=bool(data),
        accounting=results.ledger.accounting(),
        offered=Offered(
            duration_s=duration_s,
            concurrency=int(config.get("concurrency", 1)) if closed else None,
            rate_offered=None if closed else statistics.rate_started,
        ),
        tracing=Tracing(state="not known: imported from Rally"),
        statistics=statistics,
        verdicts=tuple(map(_verdict, workload["sla_results"].get("sla", ()))),
        sla_sources=(RALLY,) * len(workload["sla_results"].get("sla", ())),
        contexts=tuple(map(_context, workload.get("contexts_results", ()))),
        charts=results.charts,
        workers=(_worker(len(data)),) if data else (),
        t0_at=t0_at,
        elapsed_s=duration_s,
    )


def _results(
    directory: RunDirectory, number: int, data: Sequence[Mapping[str, Any]], t0_at: float
) -> WorkloadResults:
    """Write a workload's iterations in blocks, as if a worker had sent them; return its results.

    `data`: Rally's iterations in order of start; `t0_at`: start of the first, seconds since 1970.
    """
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))  # type: ignore[arg-type]
    results.t0_at = t0_at
    if data:
        directory.decide([{"do": "start", "workload": number, "t0_at": t0_at}])
    for block in _blocks(directory.path.name, number, data, t0_at):
        rows = block.columns["rows"]
        results.ledger.cut(WORKER, block.number, results.ledger.allot_new(rows))
        directory.keep([block.body()])
        results.add(block)
    results.ledger.close(len(data))
    return results


def _verdict(found: Mapping[str, Any]) -> Verdict:
    return Verdict(
        criterion=str(found["criterion"]),
        success=bool(found["success"]),
        detail=str(found["detail"]),
    )


def _worker(iterations: int) -> WorkerFigures:
    return WorkerFigures(
        incarnation=WORKER,
        host=WORKER,
        pid=0,
        label=WORKER,
        offset_s=0.0,
        uncertainty_s=0.0,
        iterations=iterations,
        cores=0,
    )


def _context(found: Mapping[str, Any]) -> ContextRecord:
    return ContextRecord(
        name=str(found["plugin_name"]),
        config=mask(found["plugin_cfg"]),
        setup=_step(found["setup"]),
        cleanup=_step(found["cleanup"]),
    )


def _step(found: Mapping[str, Any]) -> ContextStep | None:
    if found["started_at"] is None:
        return None
    error = found["error"]
    return ContextStep(
        started_at=float(found["started_at"]),
        finished_at=float(found["finished_at"]),
        error=Fault(etype=str(error[0]), msg=str(error[1]), details=str(error[2]))
        if error
        else None,
    )


def _blocks(
    run_id: str, workload: int, data: Sequence[Mapping[str, Any]], t0_at: float
) -> Iterator[Block]:
    names, errors = Names(), _Errors()
    for at in range(0, len(data), ROWS):
        rows = [
            _row(at + place, one, t0_at, names, errors)
            for place, one in enumerate(data[at : at + ROWS], 1)
        ]
        yield Block(
            run=run_id,
            incarnation=WORKER,
            membership=WORKER,
            number=at // ROWS + 1,
            workload=workload,
            columns=encode_rows(rows, names.names, 0),
            failures=errors.fresh(),
        )


class _Errors:
    """The different errors of a workload's iterations, numbered from 1 as in result blocks."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._fresh: list[list[Any]] = []

    def number(self, error: Sequence[Any]) -> int:
        """Return the number, from 1, of an error [type, message, traceback]; 0 without an error."""
        if not error:
            return 0
        texts = tuple(str(part) for part in [*error, "", "", ""][:3])
        if texts not in self._numbers:
            self._numbers[texts] = len(self._numbers) + 1
            self._fresh.append([self._numbers[texts], *texts])
        return self._numbers[texts]

    def fresh(self) -> list[list[Any]]:
        """Remove and return the errors added since the last call."""
        found, self._fresh = self._fresh, []
        return found


def _row(
    iteration: int, one: Mapping[str, Any], t0_at: float, names: Names, errors: _Errors
) -> Row:
    started = _ns(one["timestamp"], t0_at)
    idle = int(float(one["idle_duration"]) * 1e9)
    ended = started + int(float(one["duration"]) * 1e9) + idle
    error = one.get("error") or ()
    outcome = Outcome.OK
    if error:
        outcome = Outcome.TIMED_OUT if str(error[0]) in _TIMEOUTS else Outcome.FAILED
    actions: list[int] = []
    for action in one.get("atomic_actions", ()):
        _add_action(actions, -1, action, t0_at, names)
    packed = [
        msgpack.packb({"kind": kind, "item": item})
        for kind in ("additive", "complete")
        for item in (one.get("output") or {}).get(kind, ())
    ]
    extra = (b"", packed, b"") if packed else None
    return row(
        iteration=iteration,
        outcome=int(outcome),
        due=started,
        started=started,
        ended=ended,
        idle=idle,
        failure=errors.number(error),
        actions=pack_actions(actions) if actions else b"",
        extra=extra,
    )


def _add_action(
    actions: list[int], outer: int, action: Mapping[str, Any], t0_at: float, names: Names
) -> None:
    place = len(actions) // 5
    begun, ended = _ns(action["started_at"], t0_at), _ns(action["finished_at"], t0_at)
    failed = int(bool(action.get("failed")))
    actions += (names.number(str(action["name"])), outer, begun, ended, failed)
    for inner in action.get("children", ()):
        _add_action(actions, place, inner, t0_at, names)


def _ns(at: float, t0_at: float) -> int:
    return round((float(at) - t0_at) * 1e9)


def _timestamp(text: str) -> float:
    """Convert a time from Rally, ISO 8601, to seconds since 1970; UTC if it has no time zone."""
    found = datetime.fromisoformat(str(text))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
