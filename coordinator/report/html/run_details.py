"""Computes head and last section of a run's page: task, times, versions, notes; no secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.secrets.masking import mask
from osbench.common.secrets.url_masking import mask_url
from osbench.common.values.outcomes import STATES
from osbench.coordinator.formatting import timestamp
from osbench.coordinator.report.html.page_numbers import DASH, percent_text
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.page_facts import PageFacts
from osbench.coordinator.task.taskfile.task_yaml import plain_yaml

_TEXT = 100_000
_NOTES = 100


@dataclass(frozen=True, kw_only=True)
class RunHead:
    """The head of a run's page, above the verdict; texts are "" if not known."""

    run_id: str
    title: str
    state: str
    when: str
    deployment: str
    tags: list[str]
    exit_code: int | None
    osbench: str


@dataclass(frozen=True, kw_only=True)
class RunDetails:
    """The last section of a run's page: task as YAML, facts, notes, and sums by workload."""

    task: str
    task_note: str
    facts: list[tuple[str, str]]
    notes: list[str]
    sums: list[tuple[str, list[int]]]


def run_head(facts: PageFacts) -> RunHead:
    """Return the head of the page: title, state, times, deployment, tags and versions.

    The exit code is None while the run goes on.
    """
    report, manifest = facts.report, facts.manifest
    code = report.exit_code
    return RunHead(
        run_id=report.run_id or facts.run_id,
        title=mask_url(report.task) or "Run",
        state=facts.state,
        when=_when(facts),
        deployment=str(manifest.get("deployment") or ""),
        tags=list(report.tags),
        exit_code=code if facts.state != "running" else None,
        osbench=str(manifest.get("osbench") or ""),
    )


def run_details(facts: PageFacts, workloads: Sequence[WorkloadFacts]) -> RunDetails:
    """Return the last section of the page: task, facts such as versions, notes and sums.

    A fact without a value is left out; secrets are masked. At most `_NOTES` notes.
    """
    manifest, report = facts.manifest, facts.report
    head = run_head(facts)
    pairs = [
        ("run", head.run_id),
        ("started", _start_time(facts)),
        ("finished", (report.finished_at or "") if facts.state == "finished" else ""),
        ("exit code", _exit_words(head.exit_code, report.exit_meaning)),
        ("state", "" if facts.state == "finished" else facts.state),
        ("description", mask_url(report.description)),
        ("tags", ", ".join(head.tags)),
        # readers of the page must not learn the folder of the file
        ("task file", Path(str(manifest.get("source") or "")).name),
        ("osbench", head.osbench),
        ("workers run", ", ".join(_versions(workloads))),
        ("deployment", f"{head.deployment} (without credentials)" if head.deployment else "none"),
    ]
    pairs.append(("traced", ", ".join(_sample_rates(workloads))))
    names = ("planned", *STATES, "reruns")
    sums = [one.report.accounting for one in workloads]
    return RunDetails(
        task=_task(manifest)[:_TEXT],
        task_note="As the run read it; secrets are hidden.",
        facts=[(name, value) for name, value in pairs if value],
        notes=list(map(mask_url, report.notes[:_NOTES])),
        sums=[
            (
                "run again" if name == "reruns" else name.replace("_", " "),
                [one.state(name) for one in sums],
            )
            for name in names
        ],
    )


def _task(manifest: Any) -> str:
    """Return title, description and workloads of run.json as YAML, secrets masked.

    The task file is not kept, as it may hold secrets.
    """
    task: dict[str, Any] = {"title": manifest.get("task")}
    if manifest.get("description"):
        task["description"] = manifest["description"]
    task["workloads"] = [
        {name: value for name, value in one.items() if value not in (None, "", {}, [])}
        for one in manifest.get("workloads") or ()
    ]
    masked: Any = mask(task)
    return plain_yaml(masked, width=100)


def _versions(workloads: Sequence[WorkloadFacts]) -> list[str]:
    workers = [worker for workload in workloads for worker in workload.report.workers]
    ours = {f"osbench {worker.version}" for worker in workers if worker.version}
    pythons = {
        f"Python {worker.python}{', not optimised' if worker.unoptimised else ''}"
        for worker in workers
        if worker.python
    }
    return [*sorted(ours), *sorted(pythons)]


def _sample_rates(workloads: Sequence[WorkloadFacts]) -> list[str]:
    tracing = [(one.title, one.report.tracing) for one in workloads]
    return [f"{percent_text(one.sample_rate)} of {title}" for title, one in tracing if one.traced]


def _exit_words(code: int | None, meaning: str) -> str:
    if code is None:
        return ""
    return f"{code}: {meaning}" if meaning else str(code)


def _when(facts: PageFacts) -> str:
    begun = _start_time(facts)
    ended = (facts.report.finished_at or "") if facts.state == "finished" else ""
    if not begun:
        return ""
    said = f"{begun[:10]} {begun[11:19]}"
    if ended:
        day = "" if ended[:10] == begun[:10] else f"{ended[:10]} "
        said += f" {DASH} {day}{ended[11:19]}"
    return f"{said} UTC"


def _start_time(facts: PageFacts) -> str:
    """Return the start of the run, ISO 8601 in UTC; "" if it is not known."""
    if facts.report.started_at:
        return facts.report.started_at
    seconds = facts.manifest.get("started_at")
    return timestamp(seconds) if isinstance(seconds, int | float) else ""
