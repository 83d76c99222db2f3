"""Checks the phases of a workload (before, during and after a fault): a hook begins each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import cast

from osbench.common.errors import PluginError, Problem
from osbench.common.plugin.entry_points import names
from osbench.common.plugin.plugin_names import parse_name
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Runner, SearchingRunner
from osbench.common.plugin.trigger import Trigger
from osbench.common.task import HookConfig, Workload
from osbench.coordinator.task.taskfile.places import inside

#: Value up to which a trigger is asked if nothing says how long the load is.
_FAR = 10**6


def faults(workload: Workload, runner: Runner, plugins: Plugins) -> Iterator[Problem]:
    """Yield the problems of a workload's `phases`, or of a criterion `drill` without phases.

    Each phase must name exactly one hook, which fires once, during the load: the hook of `fault`
    after the warm-up, the hook of `after` later. The load must not be a search, nor itself the
    fault. A limit `left_in_error` needs a scenario with cloud resources.
    """
    criteria = [
        (inside(inside(workload.place, "sla"), one.name), one.config)
        for one in workload.sla
        if parse_name(one.name).bare == "drill"
    ]
    # by the door of a runner whose load is the fault
    is_fault = runner.NAME in names("drill")
    if not workload.phases:
        for place, _ in criteria:
            yield Problem(
                place,
                f"is not for the runner {runner.NAME}, whose load is the fault itself"
                if is_fault
                else "needs the key `phases` of the workload, such as phases: {fault: HOOK}: it"
                " says which hook causes the fault",
            )
        return
    for place, limits in criteria:
        limited = isinstance(limits, Mapping) and "left_in_error" in limits
        if limited and not _creates(workload, plugins):
            yield Problem(
                inside(place, "left_in_error"),
                f"the scenario {workload.scenario} creates no resources in a cloud that osbench can"
                " find: remove this limit",
            )
    place = inside(workload.place, "phases")
    if isinstance(runner, SearchingRunner) or is_fault:
        yield Problem(
            place,
            f"cannot be combined with the runner {workload.runner.name}, whose load changes",
        )
        return
    instants: dict[str, int] = {}
    places: dict[str, int] = {}
    for phase, label in workload.phases.items():
        here = inside(place, phase)
        called = [at for at, hook in enumerate(workload.hooks) if hook.label == label]
        if len(called) != 1:
            yield Problem(here, _not_one(workload, label, len(called)))
            continue
        places[phase] = called[0]
        hook = workload.hooks[called[0]]
        first, problem = _first(hook, runner, plugins)
        if problem:
            yield Problem(here, f"the hook {label!r} {problem}")
        elif first is not None:
            instants[phase] = first
    if len(places) == len(workload.phases) > len(set(places.values())):
        yield Problem(
            inside(place, "after"), "names the hook of `fault`: name the hook that ends the fault"
        )
    elif "fault" in instants and instants["fault"] <= workload.warmup_s:
        yield Problem(
            inside(place, "fault"),
            f"begins {instants['fault']} s into the load, and the load is measured from "
            f"{workload.warmup_s:g} s on: no figures before the fault; fire its hook later",
        )
    elif len(instants) > 1 and instants["after"] <= instants["fault"]:
        yield Problem(
            inside(place, "after"),
            f"begins {instants['after']} s into the load, and `fault` at {instants['fault']} s: "
            "its hook has to fire later",
        )


def _creates(workload: Workload, plugins: Plugins) -> bool:
    """Return whether a scenario creates resources that osbench finds by their names."""
    try:
        return "cleanup" in plugins.scenario(workload.scenario).context
    except PluginError:
        return True  # reported by the check of plug-ins


def _not_one(workload: Workload, label: str, number: int) -> str:
    if number:
        return f"{number} hooks are called {label!r}: give them descriptions, and name one of these"
    names = ", ".join(repr(hook.label) for hook in workload.hooks)
    known = f"its hooks are {names}" if names else "it has no hooks"
    return (
        f"the workload has no hook called {label!r}: {known}; a hook is called by its description"
    )


def _first(hook: HookConfig, runner: Runner, plugins: Plugins) -> tuple[int | None, str]:
    """Return the second of the load at which a hook fires, and a problem of its trigger or "".

    Problems: it fires more than once, or not within a load of known length. The second is None with
    a problem, or if the trigger counts iterations, never fires, or fails (reported elsewhere).
    """
    try:
        kind = cast(type[Trigger], plugins.get("trigger", hook.trigger.name))
        trigger = kind(hook.trigger.config)
        lasts = runner.planned_s if trigger.unit == "time" else runner.planned
        until = _FAR if lasts is None else int(lasts)
        due = list(islice(trigger.due(-1, until), 2))
    except PluginError:
        return None, ""  # reported by the check of plug-ins
    except Exception:  # noqa: BLE001 - a plug-in's own code may raise anything
        return None, ""  # reported while it runs
    if len(due) > 1:
        return None, (
            "fires more than once, and a phase begins once: give it the trigger event: {unit: time,"
            " at: [30]}, or several hooks"
        )
    if not due and lasts is not None:
        what = f"{until} s" if trigger.unit == "time" else f"{until} iterations"
        return None, f"does not fire within the load of {what}: fire it earlier"
    return (due[0] if due and trigger.unit == "time" else None), ""


def notes(workload: Workload, runner: type[Runner]) -> Iterator[Problem]:
    """Yield a note if a workload with phases has a closed runner: it starts little in a fault."""
    if workload.phases and not runner.OPEN:
        yield Problem(
            inside(workload.place, "phases"),
            "virtual users of a closed load wait while a service does not respond, and start few"
            " iterations then: an open runner, such as rps, shows the full cost of a fault",
        )
