"""Parses a document into a task: both versions of the task format, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from osbench.common.errors import Problem, TaskError
from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.common.task import HookConfig, Named, Subtask, Task, Workload
from osbench.coordinator.task.taskfile import mixes, zone_shares
from osbench.coordinator.task.taskfile.places import inside, shown_value
from osbench.coordinator.task.taskfile.schema import schemas
from osbench.coordinator.task.taskfile.schema.schema_durations import in_seconds
from osbench.coordinator.task.taskfile.schema.schema_errors import validate
from osbench.coordinator.task.taskfile.spellings import without_subtasks

#: Runner and SLA of a workload where the file does not set them.
DEFAULT_RUNNER = Named(name="serial")
DEFAULT_SLA = (Named(name="failure_rate", config={"max": 0}),)


def parse(document: Any, source: str) -> Task:
    """Convert a document of version 1 or 2 to a task with defaults; plug-ins are not consulted.

    `source`: the path of its file. Raises TaskError with all violations of the format.
    """
    version, problems = _version(document)
    if version:
        document = _in_seconds(document, version)
        problems += _faults_1(document) if version == 1 else _faults_2(document)
    if problems:
        raise TaskError(source, problems)
    return _task_1(document, source) if version == 1 else _task_2(document, source)


def sound_part(document: Any, source: str) -> Task | None:
    """Return the task of the valid parts of a document with faults; None if nothing can be used.

    Faulty scenarios become a harmless one. Callers check plug-ins, to report all problems at once.
    """
    version, _ = _version(document)
    if not version:
        return None
    document = _in_seconds(document, version)
    if version == 1:
        found = {"version": 1, **_sound_1(document)}
    else:
        kept = _sound_object(document, schemas.TASK)
        found = {"title": "", **kept, "version": 2, "subtasks": _sound_2(document)}
    try:
        task = parse(found, source)
    except TaskError:
        return None
    return task if version == 2 else _with_stand_ins(task, document)


def _sound_1(document: Mapping[str, Any]) -> dict[str, Any]:
    schema = schemas.TASK_V1["additionalProperties"]["items"]
    return {
        # messages give places in the complete document: no item may be left out before them
        name: [_sound_item(one if isinstance(one, dict) else {}, schema) for one in items]
        for name, items in _scenarios_1(document).items()
        if isinstance(items, list) and items
    }


def _sound_item(item: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = _sound_object(item, schema)
    if "args" in item and "args" not in kept:
        return {key: value for key, value in kept.items() if key in _WITHOUT_SCENARIO}
    return kept


def _with_stand_ins(task: Task, document: Mapping[str, Any]) -> Task:
    """Return a task of version 1, a harmless scenario for items or `args` other than mappings."""
    (name,) = _STAND_IN["scenario"]

    def sound(workload: Workload, item: Any) -> Workload:
        arguments = item.get("args", {}) if isinstance(item, dict) else None
        return workload if isinstance(arguments, dict) else replace(workload, scenario=name)

    lists = [one for one in _scenarios_1(document).values() if isinstance(one, list) and one]
    return replace(
        task,
        subtasks=tuple(
            replace(subtask, workloads=tuple(map(sound, subtask.workloads, items)))
            for subtask, items in zip(task.subtasks, lists, strict=True)
        ),
    )


def _sound_2(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    subtasks = document.get("subtasks")
    for subtask in subtasks if isinstance(subtasks, list) else []:
        schema = _schema_2(subtask)
        # messages give places in the complete document: nothing may be left out before them
        kept = _sound_object(subtask if isinstance(subtask, dict) else {}, schema)
        if schema is schemas.SUBTASK:
            item, inner = schema["properties"]["workloads"]["items"], subtask["workloads"]
            kept["workloads"] = [
                _sound_object(one if isinstance(one, dict) else {}, item)
                for one in (inner if isinstance(inner, list) and inner else [{}])
            ]
        found.append({"title": "", **kept})
    return found


#: Stands for a scenario that does not fit the format; its checks find nothing.
_STAND_IN: Mapping[str, Any] = {"scenario": {"Dummy.dummy": {}}}
#: Keys whose checks do not look at the scenario.
_WITHOUT_SCENARIO = ("title", "runner", "sla")
#: Keys whose checks look at the runner.
_WITH_RUNNER = ("users", "workers", "think", "abort", "warmup", "phases")


def _sound_object(found: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `found`, an object of the document, with the keys that fit its `schema`.

    Keys whose check needs a faulty key are left out, too. If a scenario is required and faulty, a
    harmless one replaces it.
    """
    known = schema["properties"]
    if isinstance(named := found.get("scenario"), str):
        found = {**found, "scenario": {named: {}}}
    kept = {key: v for key, v in found.items() if key in known and not validate(v, known[key], "")}
    if "runner" in found and "runner" not in kept:
        kept = {key: value for key, value in kept.items() if key not in _WITH_RUNNER}
    if "hooks" in found and "hooks" not in kept:
        kept.pop("phases", None)
    if "phases" in found and "phases" not in kept and isinstance(kept.get("sla"), Mapping):
        kept["sla"] = {name: one for name, one in kept["sla"].items() if name != "drill"}
    if "scenario" in schema["required"] and "scenario" not in kept:
        kept = {key: value for key, value in kept.items() if key in _WITHOUT_SCENARIO}
        return {**kept, **_STAND_IN}
    return kept


def _version(document: Any) -> tuple[int, list[Problem]]:
    if document is None or document == {}:
        return 0, [Problem("", "is empty")]
    if not isinstance(document, dict):
        return 0, [Problem("", f"must be an object, got {shown_value(document)}")]
    if wrong := without_subtasks(document):
        return 0, [Problem("", wrong)]
    version = document.get("version", 1)
    if "version" not in document and "subtasks" in document:
        return 2, [Problem("version", "is missing: add version: 2")]
    if isinstance(version, bool) or version not in (1, 2):
        return 0, [Problem("version", f"must be 1 or 2, got {shown_value(version)}")]
    return int(version), []


def _in_seconds(document: Mapping[str, Any], version: int) -> Mapping[str, Any]:
    """Return a copy of the document in which osbench's own durations are numbers of seconds.

    Durations in configurations of plug-ins are unchanged: their schemas are not known here.
    """
    subtasks = document.get("subtasks")
    if version == 1 or not isinstance(subtasks, list):
        return dict(in_seconds(document, schemas.TASK_V1))
    return {**document, "subtasks": [in_seconds(one, _schema_2(one)) for one in subtasks]}


def _schema_2(subtask: Any) -> Mapping[str, Any]:
    # one schema for both forms would report problems of the form that was not meant
    within = isinstance(subtask, dict) and "workloads" in subtask
    return schemas.SUBTASK if within else schemas.SIMPLE_SUBTASK


def _faults_1(document: Mapping[str, Any]) -> list[Problem]:
    scenarios = _scenarios_1(document)
    if not scenarios:
        return [Problem("", "names no scenario")]
    return validate(scenarios, schemas.TASK_V1, "")


def _faults_2(document: Mapping[str, Any]) -> list[Problem]:
    problems = validate({"version": 2, **document}, schemas.TASK, "")
    subtasks = document.get("subtasks")
    for position, subtask in enumerate(subtasks if isinstance(subtasks, list) else []):
        if isinstance(subtask, dict):
            problems += validate(subtask, _schema_2(subtask), inside("subtasks", position))
    return problems or mixes.faults(document["subtasks"])


def _scenarios_1(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: items for name, items in document.items() if name != "version"}


def _task_1(document: Mapping[str, Any], source: str) -> Task:
    subtasks = []
    for name, items in _scenarios_1(document).items():
        workloads = tuple(
            _workload(_as_version_2(name, item), inside(inside("", name), position), position)
            for position, item in enumerate(items)
        )
        subtasks.append(Subtask(title=mask_url(name), workloads=workloads))
    title = "standard input" if source == "-" else Path(source).name
    return Task(title=title, subtasks=tuple(subtasks), version=1, source=source)


def _as_version_2(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    workload = dict(item)
    workload["scenario"] = {name: workload.pop("args", {})}
    workload["contexts"] = workload.pop("context", {})
    if "runner" in workload:
        runner = dict(workload["runner"])
        workload["runner"] = {runner.pop("type", "serial"): runner}
    workload["hooks"] = [
        {
            "action": {hook["name"]: hook["args"]},
            "trigger": {hook["trigger"]["name"]: hook["trigger"]["args"]},
            "description": hook.get("description", ""),
        }
        for hook in item.get("hooks", [])
    ]
    return workload


def _task_2(document: Mapping[str, Any], source: str) -> Task:
    return Task(
        title=mask_url(document["title"]),
        subtasks=tuple(
            _subtask(subtask, inside("subtasks", position))
            for position, subtask in enumerate(document["subtasks"])
        ),
        version=2,
        description=mask_text(document.get("description", "")),
        tags=_tags(document),
        source=source,
    )


def _subtask(subtask: Mapping[str, Any], place: str) -> Subtask:
    if "workloads" in subtask:
        within = inside(place, "workloads")
        workloads = tuple(
            _workload(workload, inside(within, position), position)
            for position, workload in enumerate(subtask["workloads"])
        )
    else:
        workloads = (_workload(subtask, place, 0),)
    return Subtask(
        title=mask_url(subtask["title"]),
        workloads=workloads,
        description=mask_text(subtask.get("description", "")),
        tags=_tags(subtask),
        group=subtask.get("group"),
        run_in_parallel=subtask.get("run_in_parallel", False),
    )


def _workload(workload: Mapping[str, Any], place: str, position: int) -> Workload:
    scenario, args = mixes.scenario_of(workload)
    return Workload(
        place=place,
        position=position,
        scenario=scenario,
        named=mask_url(workload.get("name", "")),
        args=args,
        runner=_named_configs(workload["runner"])[0] if "runner" in workload else DEFAULT_RUNNER,
        contexts=_named_configs(workload.get("contexts", {})),
        # this very tuple object: a file with the same criteria has a separate one
        sla=_named_configs(workload["sla"]) if "sla" in workload else DEFAULT_SLA,
        hooks=tuple(_hook(hook) for hook in workload.get("hooks", ())),
        description=mask_text(workload.get("description", "")),
        args_from=workload.get("args_from", ""),
        idempotent=workload.get("idempotent", False),
        warmup_s=float(workload.get("warmup", 0)),
        users=workload.get("users", {}),
        zones=zone_shares.shares_of(workload.get("workers", ())),
        think=workload.get("think", {}),
        http=workload.get("http", {}),
        abort=workload.get("abort", {}),
        phases={name: mask_text(hook) for name, hook in workload.get("phases", {}).items()},
        enable_profiler=workload.get("enable_profiler"),
    )


def _hook(hook: Mapping[str, Any]) -> HookConfig:
    (action,) = _named_configs(hook["action"])
    (trigger,) = _named_configs(hook["trigger"])
    return HookConfig(
        action=action, trigger=trigger, description=mask_text(hook.get("description", ""))
    )


def _tags(part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(mask_url, part.get("tags", ())))


def _named_configs(entries: Mapping[str, Any]) -> tuple[Named, ...]:
    return tuple(Named(name=name, config=config) for name, config in entries.items())
