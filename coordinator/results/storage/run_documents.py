"""Documents of a run directory: `run.json`, `summary.json`, and the timeline of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import zstandard

from osbench import __version__
from osbench.common.deployment.record import Deployment
from osbench.common.errors import UsageError, WrongDocument
from osbench.common.files.decompression import decompress
from osbench.common.files.regular_files import read_regular
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.unpacking import unpack
from osbench.common.secrets.masking import mask
from osbench.common.secrets.url_masking import without_credentials
from osbench.common.task import Named, Task, Workload
from osbench.coordinator.results.storage import digests
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: File of a finished run, which docs/results.schema.json describes, and the version of its format;
#: that grows when a reader of the older one would be misled.
SUMMARY = "summary.json"
SUMMARY_FORMAT = 1

#: Parts of a summary, and of each of its workloads.
_RUN = frozenset(
    ("run_id", "task", "tags", "started_at", "finished_at", "exit_code", "notes", "workloads")
)
_WORKLOAD = frozenset(
    (
        *("name", "subtask", "position", "runner", "accounting", "offered", "latency", "actions"),
        *("start_lag", "throughput", "tracing", "errors", "sla", "hooks", "contexts", "workers"),
    )
)

#: File of a run's results over time, also written during the run, and the version of its format.
TIMELINE = "timeline"
TIMELINE_FORMAT = 1
#: Most bytes that are read of it, decompressed.
TIMELINE_BYTES = 512 << 20


def describe(
    run_id: str,
    started_at: float,
    task: Task,
    tags: list[str],
    plugins: Plugins,
    deployment: Deployment | None,
) -> dict[str, Any]:
    """Return the content of `run.json`: the requested run, secrets masked; writes nothing.

    Called once, at the start of the run. `started_at`: seconds since 1970. `tags`: all tags of the
    run.
    """
    return {
        "run_id": run_id,
        "osbench": __version__,
        "digests": digests.FORMAT,
        "started_at": started_at,
        "task": task.title,
        "description": task.description,
        "source": task.source,
        "tags": tags,
        "deployment": deployment.name if deployment else None,
        "trace_store": _trace_store(deployment),
        "workloads": [_workload(workload, plugins) for workload in task.workloads],
    }


def _trace_store(deployment: Deployment | None) -> str:
    """Return OSProfiler's connection string, without credentials; "" if no store is used."""
    if deployment is None or not deployment.profiler_hmac_key:
        return ""
    return without_credentials(deployment.profiler_conn_str or "")


def _workload(workload: Workload, plugins: Plugins) -> dict[str, Any]:
    return {
        "name": workload.name,
        "scenario": workload.scenario,
        "scenario_source": plugins.scenario(workload.scenario).source,
        "args": mask(workload.args),
        "runner": _configurations((workload.runner,)),
        "sla": _configurations(workload.sla),
        "idempotent": workload.idempotent,
        "warmup": workload.warmup_s,
        "abort": dict(workload.abort),
        "args_from": workload.args_from,
        "users": mask(workload.users),
        "think": dict(workload.think),
        "http": mask(workload.http),
        "contexts": _configurations(workload.contexts),
        "hooks": [
            {
                "description": hook.description,
                "action": _configurations((hook.action,)),
                "trigger": _configurations((hook.trigger,)),
            }
            for hook in workload.hooks
        ],
        "phases": dict(workload.phases),
    }


def _configurations(plugins: Sequence[Named]) -> dict[str, Any]:
    return {plugin.name: mask(plugin.config) for plugin in plugins}


def summary_of(directory: RunDirectory) -> dict[str, Any] | None:
    """Return the summary of a finished run; None if there is none.

    Raises UsageError if it has another version's format, DamagedRun if the summary is damaged, or a
    file of the run is missing, new or of another size. If there was damage and it was accepted, the
    first of its `notes` states the damage.
    """
    directory.files.check_sizes()
    found = directory.read(SUMMARY)
    if found is None:
        return None
    path = directory.path / SUMMARY
    version = found.get("format") if isinstance(found, dict) else None
    if version != SUMMARY_FORMAT:
        raise UsageError(
            f"{path} has format {version}, and this osbench reads {SUMMARY_FORMAT}; read it with "
            "the osbench that wrote it"
        )
    if not is_summary(found):
        raise WrongDocument(f"{path} is damaged")
    return {**found, "notes": [directory.damage, *found["notes"]]} if directory.damage else found


def write_summary(directory: RunDirectory, summary: dict[str, Any]) -> None:
    """Write digests and summary of a run that has ended, as its last files. Raises StorageError."""
    directory.finish(SUMMARY, summary)


def is_summary(document: object) -> bool:
    """Return whether a document has all keys of a summary and of its workloads.

    The values of the keys are not checked.
    """
    if not isinstance(document, dict) or not document.keys() >= _RUN:
        return False
    workloads = document["workloads"]
    return isinstance(workloads, list) and all(
        isinstance(one, dict) and one.keys() >= _WORKLOAD for one in workloads
    )


def write_timeline(directory: RunDirectory, document: dict[str, Any], *, sync: bool) -> None:
    """Replace the file `timeline` by `document`, packed and compressed, atomically.

    `sync` waits until it is on disk. Raises StorageError, and DamagedRun if the run's digests are
    damaged.
    """
    packed = msgpack.packb({"format": TIMELINE_FORMAT, **document})
    directory.replace(TIMELINE, zstandard.ZstdCompressor(level=1).compress(packed), sync=sync)


def read_timeline(directory: RunDirectory) -> dict[str, Any] | None:
    """Return the content of the file `timeline`: results over time, and a summary, so far.

    None if the file is missing, unreadable, malformed or of another format. Raises DamagedRun if it
    has changed since the end of its run.
    """
    directory.files.check(TIMELINE)
    try:
        packed = read_regular(directory.path / TIMELINE, TIMELINE_BYTES)
        found: Any = unpack(decompress(packed, TIMELINE_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("format") != TIMELINE_FORMAT:
        return None
    workloads: Any = found.get("workloads")
    summary: Any = found.get("summary")
    if not isinstance(workloads, list) or not is_summary(summary):
        return None
    return found if len(workloads) == len(summary["workloads"]) else None
