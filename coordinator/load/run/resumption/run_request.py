"""Saves the request for a run, encrypted, in its directory, and loads it: `rerun` repeats it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench.common.errors import UsageError
from osbench.common.files.encrypted_file import EncryptedFile
from osbench.common.files.named_files import expanded
from osbench.common.task import Task
from osbench.coordinator.load.run.plan import RunOptions, RunPlan
from osbench.coordinator.load.run.resumption.plan_file import task_of
from osbench.coordinator.plugins.contexts.state_store import KEY
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: File of the run directory: it holds arguments and configurations with their secrets.
REQUEST = "request"


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The request for a run as saved in its directory: task, options, plug-ins and deployment.

    `rerun` begins a new run with it. `prefer`: the source of plug-ins that is searched first.
    """

    task: Task
    options: RunOptions
    plugin_paths: tuple[str, ...]
    prefer: str
    #: Name of the deployment record; None if there was none.
    deployment: str | None


def save(plan: RunPlan, directory: RunDirectory) -> None:
    """Encrypt and write the request for a run, with its secrets; return when it is on disk.

    Paths of the task and of plug-ins become absolute. Raises OsbenchError.
    """
    # files that the task names are found next to it, from any working directory
    source = str(expanded(plan.task.source).absolute())
    document = {
        "task": {**asdict(plan.task), "source": source},
        "options": {**asdict(plan.options), "run_id": ""},
        "plugin_paths": [str(expanded(path).absolute()) for path in plan.plugins.paths],
        "prefer": plan.plugins.prefer,
        "deployment": plan.deployment.name if plan.deployment else None,
    }
    _file(directory, plan.conf).write(json.dumps(document).encode())


def load(directory: RunDirectory, conf: cfg.ConfigOpts) -> RunRequest:
    """Return the decrypted request of a run.

    Raises UsageError if none was saved, DamagedRun if the file has changed, OsbenchError if it
    cannot be decrypted.
    """
    directory.files.check(REQUEST)
    content = _file(directory, conf).read()
    if content is None:
        name = directory.path.name
        raise UsageError(
            f"run {name} cannot be run again, as its request is not kept; run its task file instead"
        )
    saved: dict[str, Any] = json.loads(content)
    options = RunOptions(**saved["options"])
    return RunRequest(
        task=task_of(saved["task"]),
        options=replace(options, tags=tuple(options.tags)),
        plugin_paths=tuple(saved["plugin_paths"]),
        prefer=saved["prefer"],
        deployment=saved["deployment"],
    )


def _file(directory: RunDirectory, conf: cfg.ConfigOpts) -> EncryptedFile:
    return EncryptedFile(directory.path / REQUEST, Path(conf.data_dir) / KEY)
