"""The encrypted plan of a run on disk, from which another coordinator makes the same `RunPlan`.

The file is written before the run begins, and removed once the run has its report. It lacks the
connection to Redis, which the configuration of the resuming command provides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench import __version__
from osbench.common.config.options import OPTIONS
from osbench.common.deployment.record import Deployment
from osbench.common.errors import OsbenchError, UsageError
from osbench.common.files.encrypted_file import EncryptedFile
from osbench.common.files.named_files import expanded
from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.keyring import Keyring
from osbench.common.task import HookConfig, Named, Subtask, Task, Workload
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.plan import RunOptions, RunPlan, plan_run, runner_of
from osbench.coordinator.plugins.contexts.state_store import KEY, ContextStateStore
from osbench.coordinator.results.storage.resumable import PLAN
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.task.data_file import DataFile, read_data_file

#: Version of its format.
FORMAT = 1
#: Options that belong to the host and the command that resumes, not to the run.
_OTHERS = {
    "DEFAULT": None,
    "security": None,
    "messaging": {"redis_url", "broker_url", "redis_timeout_s"},
    "coordinator": {"plugin_path", "metrics_address", "wait_for_workers_s"},
    "worker": {"metrics_address"},
}


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """The plan of a run as its first coordinator saved it, read again by `load`."""

    plan: RunPlan
    #: Seconds since 1970-01-01 UTC.
    started_at: float
    #: Keys of a run in local mode; None if it used shared workers.
    keyring: Keyring | None


def save(plan: RunPlan, connection: Connection, directory: RunDirectory, started_at: float) -> None:
    """Encrypt and write the plan of a run to its directory; return when it is on disk.

    `connection`: in local mode its keys are saved, too. `started_at`: seconds since 1970. Raises
    OsbenchError.
    """
    document = {
        "format": FORMAT,
        "osbench": __version__,
        "started_at": started_at,
        "task": asdict(plan.task),
        "options": {**asdict(plan.options), "run_id": plan.run_id},
        "plugin_paths": [str(expanded(path).absolute()) for path in plan.plugins.paths],
        "prefer": plan.plugins.prefer,
        "deployment": plan.deployment.to_dict() if plan.deployment else None,
        "settings": _settings(plan.conf),
        "scenarios": {one.number: one.scenario.source_hash for one in plan.workloads},
        "data": {
            one.number: _data_document(one.data) for one in plan.workloads if one.data is not None
        },
        "user_data": {
            one.number: _data_document(one.user_data)
            for one in plan.workloads
            if one.user_data is not None
        },
        "secrets": connection.keyring.text if connection.local else None,
    }
    file = _file(directory, plan.conf)
    file.write(json.dumps(document).encode())


def load(directory: RunDirectory, conf: cfg.ConfigOpts) -> SavedRun:
    """Return the plan of a run, and set options of `conf` to the values saved at its first start.

    Reads plug-ins and data files again. Raises UsageError if the plan or the contexts' data cannot
    be read, if scenarios, data files or the version of osbench have changed, or if `conf` lacks the
    Redis of shared workers. Raises other OsbenchErrors if task or plug-ins cannot be loaded.
    """
    name = directory.path.name
    saved = _read_plan(directory, conf)
    private = saved["secrets"] is not None
    if not private and not conf.messaging.redis_url:
        raise UsageError(
            f"run {name} has shared workers: set [messaging] redis_url to the Redis that they use"
        )
    _restore_settings(conf, saved["settings"])
    if private:
        for option in ("redis_url", "broker_url"):
            conf.set_override(option, None, "messaging")
    plugins = Plugins(saved["plugin_paths"], saved["prefer"])
    task = task_of(saved["task"])
    _check_scenarios(name, task, plugins, saved["scenarios"])
    options = saved["options"]
    plan = plan_run(
        task,
        plugins,
        Deployment.from_dict(saved["deployment"]) if saved["deployment"] else None,
        conf,
        RunOptions(**{**options, "tags": tuple(options["tags"])}),
        dict(_rows(name, task, plugins, saved["data"])),
        {int(number): _data_file(name, one) for number, one in saved["user_data"].items()},
    )
    return SavedRun(
        plan=plan,
        started_at=saved["started_at"],
        keyring=Keyring.of(saved["secrets"]) if private else None,
    )


def _read_plan(directory: RunDirectory, conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Return the decrypted document of the plan, if the data of the contexts can be read, too.

    Raises UsageError if the plan is missing or cannot be read, if the contexts' data cannot be
    read, or if another version of osbench has written it.
    """
    name = directory.path.name
    try:
        content = _file(directory, conf).read()
        # if this only turned out once the run is taken up, that would end it for good
        ContextStateStore.load(directory.path, Path(conf.data_dir))
    except OsbenchError as error:
        raise UsageError(
            f"run {name} cannot be resumed: {error}; correct this, or undo its contexts with "
            f"`osbench-coord cleanup {name}`"
        ) from None
    if content is None:
        raise UsageError(
            f"run {name} cannot be resumed: {directory.path / PLAN} is missing; restore it from a "
            f"copy, or undo its contexts with `osbench-coord cleanup {name}`"
        )
    saved: dict[str, Any] = json.loads(content)
    if (saved["osbench"], saved["format"]) != (__version__, FORMAT):
        raise UsageError(
            f"run {name} was begun by osbench {saved['osbench']}; resume it with that version "
            f"instead of {__version__}"
        )
    return saved


def _file(directory: RunDirectory, conf: cfg.ConfigOpts) -> EncryptedFile:
    return EncryptedFile(directory.path / PLAN, Path(conf.data_dir) / KEY)


def _settings(conf: cfg.ConfigOpts) -> dict[str, dict[str, Any]]:
    """Return the values of all options that affect a run, by group and name; none is a secret."""
    return {
        group: {name: conf[group][name] for name in _names(group)}
        for group in OPTIONS
        if _names(group)
    }


def _names(group: str) -> list[str]:
    others = _OTHERS.get(group, set())
    if others is None:
        return []
    return [option.dest for option in OPTIONS[group] if option.dest not in others]


def _restore_settings(conf: cfg.ConfigOpts, settings: Mapping[str, Mapping[str, Any]]) -> None:
    for group, values in settings.items():
        for name, value in values.items():
            conf.set_override(name, value, group)


def _check_scenarios(name: str, task: Task, plugins: Plugins, known: Mapping[str, str]) -> None:
    for number, workload in enumerate(task.workloads):
        if plugins.scenario(workload.scenario).source_hash != known[str(number)]:
            raise UsageError(
                f"run {name} cannot be resumed: the file of scenario {workload.scenario} has "
                "changed since the run began; put it back as it was"
            )


def _data_document(file: IterationRows) -> dict[str, str]:
    return {
        "path": str(file.path.absolute()),
        "digest": file.digest,
        "key": file.key.decode("ascii"),
    }


def _rows(
    name: str, task: Task, plugins: Plugins, saved: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[int, IterationRows]]:
    """Yield (number, rows) of each workload with a data file, read again: its own, or its runner's.

    `name` is the run's, for messages. `saved`: path, digest and key of each file, by number of the
    workload. Raises UsageError if a file is missing or has changed.
    """
    workloads = list(task.workloads)
    for number, one in saved.items():
        workload = workloads[int(number)]
        if workload.args_from:
            yield int(number), _data_file(name, one)
            continue
        try:
            runner = runner_of(workload, plugins)
            found = runner.rows(one["key"].encode("ascii"))
        except UsageError as error:
            raise UsageError(
                f"run {name} cannot be resumed: {error}; correct this, or undo its contexts with "
                f"`osbench-coord cleanup {name}`"
            ) from None
        if found is None or found.digest != one["digest"]:
            raise _changed_file_error(name, Path(one["path"]))
        yield int(number), found


def _data_file(name: str, saved: Mapping[str, str]) -> DataFile:
    path = Path(saved["path"])
    found, problems = read_data_file(path, saved["key"].encode("ascii"))
    if found is None:
        raise UsageError(
            f"run {name} cannot be resumed: {'; '.join(problems)}; put the file back as it was"
        )
    if found.digest != saved["digest"]:
        raise _changed_file_error(name, path)
    return found


def _changed_file_error(name: str, path: Path) -> UsageError:
    return UsageError(f"run {name} cannot be resumed: {path} has changed since the run began")


def task_of(saved: Mapping[str, Any]) -> Task:
    """Return the task from a mapping that `dataclasses.asdict` made of it and JSON has passed on.

    Lists of JSON become tuples again.
    """
    subtasks = tuple(map(_subtask, saved["subtasks"]))
    return Task(**{**saved, "subtasks": subtasks, "tags": tuple(saved["tags"])})


def _subtask(saved: Mapping[str, Any]) -> Subtask:
    workloads = tuple(map(_workload, saved["workloads"]))
    return Subtask(**{**saved, "workloads": workloads, "tags": tuple(saved["tags"])})


def _workload(saved: Mapping[str, Any]) -> Workload:
    parts = {
        "runner": Named(**saved["runner"]),
        "contexts": tuple(Named(**one) for one in saved["contexts"]),
        "sla": tuple(Named(**one) for one in saved["sla"]),
        "hooks": tuple(map(_hook, saved["hooks"])),
    }
    return Workload(**{**saved, **parts})


def _hook(saved: Mapping[str, Any]) -> HookConfig:
    parts = {"action": Named(**saved["action"]), "trigger": Named(**saved["trigger"])}
    return HookConfig(**{**saved, **parts})
