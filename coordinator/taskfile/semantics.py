"""What a task asks of plug-ins, checked against the plug-ins there are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from osbench.common.context import Context
from osbench.common.errors import PluginError, Problem
from osbench.common.plugins import Plugins
from osbench.common.runner import Runner
from osbench.common.task import Named, Subtask, Task, Workload
from osbench.coordinator.taskfile import data
from osbench.coordinator.taskfile.faults import validate
from osbench.coordinator.taskfile.places import inside


def check(task: Task, plugins: Plugins) -> list[Problem]:
    """Everything in the task that no plug-in, or not the one it names, can do.

    Raises PluginError where the plug-ins themselves cannot be read.
    """
    plugins.names("runner")  # a broken plug-in file is one error, not one a workload
    return [
        problem for workload in task.workloads for problem in _workload(task, workload, plugins)
    ]


def _workload(task: Task, workload: Workload, plugins: Plugins) -> Iterator[Problem]:
    file, faults = data.data_file(task, workload)
    yield from faults
    fed = workload
    if file is not None:
        yield from data.given_twice(file, workload)
        fed = replace(workload, args={**workload.args, **file.first})
    yield from _scenario(fed, plugins, task.version)
    faults = list(_runner(workload, plugins, task.version))
    yield from faults
    if file is not None and not faults:
        runner = _runner_class(workload, plugins)(workload.runner.config)
        yield from data.too_few(file, workload, runner)
    for part in (_contexts, _sla, _hooks):
        yield from part(workload, plugins, task.version)


def describe(task: Task, plugins: Plugins) -> Task:
    """The task, checked before, with scenario titles where workloads have no description."""

    def described(workload: Workload) -> Workload:
        title = workload.description or plugins.scenario(workload.scenario).title
        return replace(workload, description=title)

    def within(subtask: Subtask) -> Subtask:
        return replace(subtask, workloads=tuple(map(described, subtask.workloads)))

    return replace(task, subtasks=tuple(map(within, task.subtasks)))


def notes(task: Task, plugins: Plugins) -> list[Problem]:
    """What the task, checked before, says without effect: nothing is refused for it."""
    return [
        Problem(_runner_place(workload, task.version), note)
        for workload in task.workloads
        for note in _answers(_runner_class(workload, plugins).notes, workload.runner.config)
    ]


def _scenario(workload: Workload, plugins: Plugins, version: int) -> Iterator[Problem]:
    name_place = workload.place if version == 1 else inside(workload.place, "scenario")
    try:
        plugin = plugins.scenario(workload.scenario)
    except PluginError as error:
        yield Problem(name_place, str(error))
        return
    args_place = inside(workload.place, "args")
    if version > 1:
        args_place = inside(name_place, workload.scenario)
    for message in plugin.check_args(workload.args):
        yield Problem(args_place, message)
    for name, config in plugin.context.items():
        for problem in _configured("context", Named(name=name, config=config), "", plugins):
            yield Problem(name_place, f"{workload.scenario} needs the context {name}: {problem}")


def _runner_place(workload: Workload, version: int) -> str:
    place = inside(workload.place, "runner")
    return place if version == 1 else inside(place, workload.runner.name)


def _runner_class(workload: Workload, plugins: Plugins) -> type[Runner]:
    return cast(type[Runner], plugins.get("runner", workload.runner.name))


def _runner(workload: Workload, plugins: Plugins, version: int) -> Iterator[Problem]:
    place = _runner_place(workload, version)
    try:
        runner = _runner_class(workload, plugins)
    except PluginError as error:
        yield Problem(place, str(error))
        return
    problems = validate(workload.runner.config, runner.CONFIG_SCHEMA, place)
    yield from problems
    if not problems:
        refused = _answers(runner.check, workload.runner.config)
        for message in refused:
            yield Problem(place, message)
        if not refused:
            yield from _warmup(workload, runner(workload.runner.config))


def _warmup(workload: Workload, runner: Runner) -> Iterator[Problem]:
    lasts_s = runner.lasts_s
    if workload.warmup_s and lasts_s is not None and workload.warmup_s >= lasts_s:
        yield Problem(
            inside(workload.place, "warmup"),
            f"must be less than the {lasts_s:g} s in which iterations start,"
            f" got {workload.warmup_s:g}",
        )


def _contexts(workload: Workload, plugins: Plugins, version: int) -> Iterator[Problem]:
    place = inside(workload.place, "context" if version == 1 else "contexts")
    for context in workload.contexts:
        with contextlib.suppress(PluginError):
            if cast(type[Context], plugins.get("context", context.name)).HIDDEN:
                yield Problem(inside(place, context.name), "is hidden: only scenarios ask for it")
                continue
        yield from _configured("context", context, inside(place, context.name), plugins)


def _sla(workload: Workload, plugins: Plugins, version: int) -> Iterator[Problem]:
    place = inside(workload.place, "sla")
    for criterion in workload.sla:
        yield from _configured("sla", criterion, inside(place, criterion.name), plugins)


def _hooks(workload: Workload, plugins: Plugins, version: int) -> Iterator[Problem]:
    for position, hook in enumerate(workload.hooks):
        place = inside(inside(workload.place, "hooks"), position)
        part = "args" if version == 1 else "action"
        yield from _configured("hook", hook.action, inside(place, part), plugins)
        part = "args" if version == 1 else hook.trigger.name
        config_place = inside(inside(place, "trigger"), part)
        yield from _configured("trigger", hook.trigger, config_place, plugins)


def _configured(kind: str, named: Named, place: str, plugins: Plugins) -> Iterator[Problem]:
    try:
        plugin: Any = plugins.get(kind, named.name)
    except PluginError as error:
        yield Problem(place, str(error))
        return
    problems = validate(named.config, getattr(plugin, "CONFIG_SCHEMA", {}), place)
    yield from problems
    if kind in ("sla", "hook", "trigger") and not problems:
        for message in _answers(plugin.check_config, named.config):
            yield Problem(place, message)


def _answers(question: Callable[[Any], list[str]], config: Any) -> list[str]:
    try:
        return question(config)
    except Exception as error:  # noqa: BLE001 - a plug-in's own code may raise anything
        return [f"cannot be checked: the plug-in raises {type(error).__name__}: {error}"]
