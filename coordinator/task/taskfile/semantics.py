"""Checks a task against the plug-ins that it names, and converts their durations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from osbench.common.errors import PluginError, Problem
from osbench.common.plugin.iteration_rows import BRANCH, IterationRows
from osbench.common.plugin.loading.checked_returns import plugin_error_text
from osbench.common.plugin.plugin_names import NATIVE, RALLY, parse_name
from osbench.common.plugin.plugins import Found, Plugins
from osbench.common.plugin.runner import Runner, SearchingRunner
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.plugin.scripted_runner import ScriptedRunner, scripted_part
from osbench.common.plugin.signature import PLACEHOLDER
from osbench.common.plugin.sla import Sla
from osbench.common.task import ABORT_OVER_S, Named, Subtask, Task, Workload
from osbench.coordinator.task.taskfile import data, drill_phases, zone_shares
from osbench.coordinator.task.taskfile.judged_actions import unknown_actions
from osbench.coordinator.task.taskfile.parsing import DEFAULT_SLA
from osbench.coordinator.task.taskfile.places import (
    Use,
    args_place,
    inside,
    runner_place,
    scenario_place,
    uses,
)
from osbench.coordinator.task.taskfile.schema import schema_durations
from osbench.coordinator.task.taskfile.schema.schema_errors import ELSEWHERE, validate
from osbench.coordinator.task.taskfile.spellings import (
    RUNNER_KEYS,
    criterion_hint,
    runner_hint,
    unknown_name,
)
from osbench.coordinator.task.taskfile.users import virtual_users
from osbench.coordinator.task.taskfile.weak_criteria import weak_criteria

#: Criteria that Rally has, too, and that shorter iterations meet more easily.
_LIMITS_OF_TIME = ("max_seconds_per_iteration", "max_avg_duration", "max_avg_duration_per_atomic")


def check(task: Task, plugins: Plugins) -> list[Problem]:
    """Return all problems of a task with its plug-ins, such as names and configurations.

    Imports plug-in files and reads data files. Durations must be in seconds (`in_seconds`). Raises
    PluginError if a plug-in path does not exist.
    """
    plugins.import_files()  # a path that does not exist is not a problem of the task
    return [
        problem for workload in task.workloads for problem in _workload(task, workload, plugins)
    ]


def _workload(task: Task, workload: Workload, plugins: Plugins) -> Iterator[Problem]:
    runner, runner_faults = None, list(_runner(workload, plugins, task.version))
    if not runner_faults:
        runner = _runner_class(workload, plugins)(workload.runner.config)
    columns, faults = data.data_file(task, workload)
    yield from faults
    arrivals = runner.rows() if runner is not None else None
    file: IterationRows | None = arrivals if columns is None else columns
    if arrivals is not None and workload.args_from:
        yield Problem(
            inside(workload.place, "args_from"),
            f"cannot be combined with the runner {workload.runner.name}, whose file defines"
            " each iteration",
        )
    if file is not None:
        yield from data.given_twice(file, workload)
    plugin = None
    try:
        plugin = plugins.scenario(workload.scenario)
    except PluginError as error:
        yield Problem(scenario_place(workload, task.version), str(error))
    if plugin is not None:
        yield from _scenario(workload, plugin, plugins, task.version, file)
        yield from virtual_users.method_faults(workload, plugin)
        if plugin.source == NATIVE:
            for asked_of in (
                partial(virtual_users.data_faults, task, plugin),
                partial(virtual_users.base_faults, plugin),
            ):
                for message in _ask_plugin(asked_of, workload):
                    yield Problem(args_place(workload, task.version), message)
    yield from virtual_users.http_faults(workload)
    yield from runner_faults
    if runner is not None:
        yield from drill_phases.faults(workload, runner, plugins)
        yield from virtual_users.faults(task, workload, runner)
        yield from zone_shares.faults(task, workload)
        if plugin is not None and isinstance(runner, ScriptedRunner):
            yield from scripted_part("faults")(workload, plugin)
        if file is not None:
            yield from data.too_few(file, workload, runner)
    yield from _all_used(task, workload, plugin, plugins)


def without_criteria(task: Task, plugins: Plugins) -> list[Problem]:
    """Return a problem for each workload whose runner searches for a load without an SLA criterion.

    Criteria on trace spans do not count: they are judged after the load. `task`: as parsed, because
    only then the default SLA, which does not count either, is recognized.
    """
    return [
        Problem(
            inside(workload.place, "sla"),
            f"is missing: {workload.runner.name} looks for the load at which a criterion breaks; "
            "add one, such as percentile: {p: 95, max_s: 500ms, of: response}",
        )
        for workload in task.workloads
        if (workload.sla is DEFAULT_SLA or not _under_load(workload, plugins))
        and _is_search(workload, plugins)
    ]


def _under_load(workload: Workload, plugins: Plugins) -> list[Named]:
    """Return the SLA criteria that are judged during the load: all except criteria on trace spans.

    Criteria with unknown names are included: another check reports them.
    """

    def is_on_spans(named: Named) -> bool:
        try:
            kind = plugins.get("sla", named.name)
        except PluginError:
            return False  # reported by `check`
        return getattr(kind, "selections", Sla.selections) is not Sla.selections

    return [one for one in workload.sla if not is_on_spans(one)]


def _is_search(workload: Workload, plugins: Plugins) -> bool:
    try:
        return issubclass(_runner_class(workload, plugins), SearchingRunner)
    except PluginError:
        return False  # reported by `check`


def in_seconds(task: Task, plugins: Plugins) -> Task:
    """Return a copy of the task with durations in plug-in configurations and arguments as seconds.

    Names of files in runner configurations become absolute paths, or values from the files.
    Configurations of unknown plug-ins are unchanged.
    """

    def read(kind: str, named: Named) -> Named:
        try:
            schema = getattr(plugins.get(kind, named.name), "CONFIG_SCHEMA", {})
        except PluginError:
            return named
        return replace(named, config=schema_durations.in_seconds(named.config, schema))

    def runner(workload: Workload) -> Named:
        named = read("runner", workload.runner)
        try:
            kind = _runner_class(workload, plugins)
        except PluginError:
            return named
        files = {
            key: str(data.data_path(task, named.config[key]).absolute())
            for key in getattr(kind, "FILES", ())
            if isinstance(named.config, Mapping) and isinstance(named.config.get(key), str)
        }
        return replace(named, config=kind.settled({**named.config, **files})) if files else named

    def arguments(workload: Workload) -> Mapping[str, Any]:
        try:
            schema = _arguments_schema(plugins.scenario(workload.scenario))
        except PluginError:
            return workload.args
        found: Mapping[str, Any] = schema_durations.in_seconds(workload.args, schema)
        return found

    def within(workload: Workload) -> Workload:
        return replace(
            workload,
            args=arguments(workload),
            runner=runner(workload),
            contexts=tuple(read("context", one) for one in workload.contexts),
            sla=tuple(read("sla", one) for one in workload.sla),
            hooks=tuple(
                replace(one, action=read("hook", one.action), trigger=read("trigger", one.trigger))
                for one in workload.hooks
            ),
        )

    return _changed_task(task, within)


def describe(task: Task, plugins: Plugins) -> Task:
    """Return a copy of a checked task; an empty description becomes the scenario's title."""

    def described(workload: Workload) -> Workload:
        title = workload.description or plugins.scenario(workload.scenario).title
        return replace(workload, description=title)

    return _changed_task(task, described)


def _changed_task(task: Task, change: Callable[[Workload], Workload]) -> Task:
    def changed_subtask(subtask: Subtask) -> Subtask:
        return replace(subtask, workloads=tuple(map(change, subtask.workloads)))

    return replace(task, subtasks=tuple(map(changed_subtask, task.subtasks)))


def notes(task: Task, plugins: Plugins, silenced: Collection[str] = ()) -> list[Problem]:
    """Return a note for each setting without effect, or with another effect than users may expect.

    These are unknown placeholders in arguments, time limits that pass more easily than in Rally,
    criteria that are met too easily, phases with a closed load, and notes of runners. The task must
    have been checked. `silenced`: notes on criteria to leave out.
    """
    found = [
        Problem(
            args_place(workload, task.version),
            f"{name} is sent as it is: only {{iteration}} and {{run}} are filled in",
        )
        for workload in task.workloads
        for name in dict.fromkeys(_placeholders(workload.args))
        if name not in getattr(plugins.scenario(workload.scenario).cls, "FILLED", ())
    ]
    found += [
        Problem(inside(workload.place, "sla"), note)
        for workload in task.workloads
        for note in _other_limits(workload, plugins)
    ]
    found += criteria_notes(task, plugins, silenced)
    for workload in task.workloads:
        found += drill_phases.notes(workload, _runner_class(workload, plugins))
    return found + [
        Problem(runner_place(workload, task.version), note)
        for workload in task.workloads
        for note in _ask_plugin(_runner_class(workload, plugins).notes, workload.runner.config)
    ]


def criteria_notes(task: Task, plugins: Plugins, silenced: Collection[str] = ()) -> list[Problem]:
    """Return a note for each criterion of a checked task that is met too easily.

    Also if a workload has no criterion, or none on failures. `silenced`: notes to leave out.
    """
    return [
        note
        for workload in task.workloads
        for note in weak_criteria(
            workload, _runner_class(workload, plugins)(workload.runner.config), plugins, silenced
        )
    ]


def _other_limits(workload: Workload, plugins: Plugins) -> Iterator[str]:
    """Yield notes on time limits that mean something else than with Rally's scenario of this name.

    That is if osbench's scenario does less in an iteration (Rally's logs in each time), or if it
    waits: Rally's durations depend on its sleeps before and between polls.
    """
    plugin = plugins.scenario(workload.scenario)
    name = parse_name(workload.scenario).bare
    needs = getattr(getattr(plugin.cls, plugin.method, None), "needs", None)
    limits = [one.name for one in workload.sla if one.name in _LIMITS_OF_TIME]
    if needs is None or not limits or name not in plugins.source(RALLY).names("scenario"):
        return
    said = (
        f"{', '.join(limits)} may pass more easily than with Rally's scenario, {name}@rally, which"
    )
    if needs.less:
        yield f"{said} {needs.less}"
    elif workload.args.get("session") != "per_iteration":
        yield f"{said} logs in in each iteration, as here with `session: per_iteration`"
    if needs.sleeps:
        yield (
            f"{', '.join(limits)}: durations differ from Rally's scenario, {name}@rally, which "
            f"sleeps {needs.sleeps}; here they are at most 10 % or 0.1 s late"
        )


def _placeholders(value: Any) -> Iterator[str]:
    """Yield each name in braces in a value's texts, at any depth, except {iteration} and {run}."""
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _placeholders(item)
    elif isinstance(value, list):
        for item in value:
            yield from _placeholders(item)


def _scenario(
    workload: Workload,
    plugin: ScenarioPlugin,
    plugins: Plugins,
    version: int,
    file: IterationRows | None,
) -> Iterator[Problem]:
    messages: list[str] = []
    if workload.args_from and file is None:
        pass  # which arguments it gives is not known
    elif plugin.source != NATIVE:
        name = parse_name(workload.scenario).in_rally
        fed = replace(workload, args={**workload.args, **(file.first if file else {})})
        messages = plugins.source(plugin.source).problems("scenario", name, workload=fed)
    elif problems := validate(
        workload.args, _arguments_schema(plugin), args_place(workload, version)
    ):
        yield from problems
    else:
        messages = _ask_plugin(
            partial(plugin.check_args, columns=file.arguments if file else ()), workload.args
        )
        if file is not None:
            messages += _ask_plugin(partial(_branch_faults, plugin, file), workload.args)
            yield from data.misfits(file, workload, partial(_ask_plugin, plugin.check_row))
    for message in messages:
        yield Problem(args_place(workload, version), message)
    for name, config in plugin.context.items():
        place = scenario_place(workload, version)
        try:
            found = plugins.find("context", name, beside=plugin)
        except PluginError as error:
            yield Problem(place, f"{plugin.name} needs the context {name}: {error}")
            continue
        for problem in _config_problems("context", found, config, "", plugins):
            yield Problem(place, f"{plugin.name} needs the context {name}: {problem}")


def _branch_faults(
    plugin: ScenarioPlugin, file: IterationRows, args: Mapping[str, Any]
) -> list[str]:
    """Return messages on branches named in rows of `file` that the scenario, with `args`, lacks.

    Empty if the file has no column for the branch.
    """
    if BRANCH not in file.arguments:
        return []
    names = dict.fromkeys(str(row[BRANCH]) for row in file.rows())
    return plugin.cls.check_branches(plugin.method, args, tuple(names))


def _arguments_schema(plugin: ScenarioPlugin) -> Mapping[str, Any]:
    """Return the JSON schema of the arguments of a scenario's method.

    {}, which accepts anything, if it declares none.
    """
    schemas: Mapping[str, Mapping[str, Any]] = getattr(plugin.cls, "ARGUMENTS", {})
    return schemas.get(plugin.method, {})


def _runner_class(workload: Workload, plugins: Plugins) -> type[Runner]:
    return cast(type[Runner], plugins.get("runner", workload.runner.name))


def _runner(workload: Workload, plugins: Plugins, version: int) -> Iterator[Problem]:
    place = runner_place(workload, version)
    try:
        runner = _runner_class(workload, plugins)
    except PluginError as error:
        name = workload.runner.name
        yield Problem(place, unknown_name(error, runner_hint(name), "runner", name))
        return
    schema = {ELSEWHERE: RUNNER_KEYS, **runner.CONFIG_SCHEMA}
    problems = validate(workload.runner.config, schema, place)
    yield from problems
    if not problems:
        refused = _ask_plugin(runner.check, workload.runner.config)
        for message in refused:
            yield Problem(place, message)
        if not refused:
            made = runner(workload.runner.config)
            yield from _warmup(workload, made)
            yield from _abort(workload, made)


def _warmup(workload: Workload, runner: Runner) -> Iterator[Problem]:
    # of a runner whose load becomes a fault, from this time on
    lasts_s = getattr(runner, "fault_s", runner.planned_s)
    during = "before the fault" if hasattr(runner, "fault_s") else "in which iterations start"
    if workload.warmup_s and lasts_s is not None and workload.warmup_s >= lasts_s:
        yield Problem(
            inside(workload.place, "warmup"),
            f"must be less than the {lasts_s:g} s {during}, got {workload.warmup_s:g}",
        )


def _abort(workload: Workload, runner: Runner) -> Iterator[Problem]:
    rule, lasts_s = workload.abort, runner.lasts_s
    if not rule:
        return
    place = inside(workload.place, "abort")
    if "failure_rate" not in rule and "percentile" not in rule:
        yield Problem(place, "has no limit to watch: give failure_rate, or percentile")
    over_s, after_s = rule.get("over_s", ABORT_OVER_S), rule.get("after_s", 0)
    if lasts_s and over_s + after_s >= lasts_s:
        yield Problem(
            place,
            f"never ends the load: after_s {after_s:g} and over_s {over_s:g} together must be less"
            f" than the {lasts_s:g} s in which iterations start",
        )


def _all_used(
    task: Task, workload: Workload, scenario: ScenarioPlugin | None, plugins: Plugins
) -> Iterator[Problem]:
    native = scenario if scenario is not None and scenario.source == NATIVE else None
    for use in uses(workload, task.version):
        faults = list(_use_problems(use, scenario, plugins))
        yield from faults
        if use.kind != "sla" or faults:
            continue
        criterion = plugins.get("sla", use.named.name)
        needed = getattr(criterion, "RUNNER", "")
        if needed not in ("", parse_name(workload.runner.name).bare):
            yield Problem(use.place, f"judges loads of the runner {needed} only")
        elif native is not None:
            question = partial(unknown_actions, workload, native, criterion)
            for message in _ask_plugin(question, use.named.config):
                yield Problem(use.place, message)


def _use_problems(use: Use, beside: ScenarioPlugin | None, plugins: Plugins) -> Iterator[Problem]:
    try:
        found = plugins.find(
            use.kind, use.named.name, beside=beside if use.kind == "context" else None
        )
    except PluginError as error:
        hint = criterion_hint(use.named.name, use.named.config) if use.kind == "sla" else ""
        name = use.named.name
        yield Problem(use.place, unknown_name(error, hint, "SLA criterion", name))
        return
    if getattr(found.cls, "HIDDEN", False):
        yield Problem(use.place, "is hidden: only scenarios ask for it")
        return
    yield from _config_problems(use.kind, found, use.named.config, use.place, plugins)


def _config_problems(
    kind: str, found: Found, config: Any, place: str, plugins: Plugins
) -> Iterator[Problem]:
    plugin: Any = found.cls
    problems = validate(config, plugin.CONFIG_SCHEMA, place)
    yield from problems
    if problems:
        return
    if kind == "context" and found.source != NATIVE:
        for message in plugins.source(found.source).problems(kind, found.address, config):
            yield Problem(place, message)
        return
    for message in _ask_plugin(plugin.check_config, config):
        yield Problem(place, message)


def _ask_plugin(question: Callable[[Any], list[str]], config: Any) -> list[str]:
    try:
        return question(config)
    except Exception as error:  # noqa: BLE001 - a plug-in's own code may raise anything
        return [f"cannot be checked: {plugin_error_text(error)}"]
