"""Checks a workload's settings of virtual users, and reads the data file of its users."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.errors import Problem
from osbench.common.plugin.entry_points import load_object, names
from osbench.common.plugin.request_values import base_fault, header_faults
from osbench.common.plugin.runner import Runner, SearchingRunner
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.secrets.secret_names import is_secret
from osbench.common.task import Task, Workload
from osbench.coordinator.task.data_file import DataFile
from osbench.coordinator.task.taskfile.data import files_of_workloads, named_file
from osbench.coordinator.task.taskfile.places import inside

#: Most bytes of a data file of users: all of it goes to each worker.
LARGEST = 16 << 20


def user_data(task: Task, workload: Workload) -> tuple[DataFile | None, list[Problem]]:
    """Return the data file of a workload's virtual users and its problems.

    Each user gets a row. (None, []) if the workload names no file; None with problems if the file
    cannot be used or its rows have more than `LARGEST` bytes.
    """
    place = inside(inside(inside(workload.place, "users"), "data"), "file")
    file, problems = named_file(task, _data(workload).get("file", ""), place)
    if file is not None and file.size > LARGEST:
        fault = f"{file.path} is larger than {LARGEST >> 20} MiB: too large for users"
        return None, [Problem(place, fault)]
    return file, problems


def user_files(task: Task) -> dict[int, DataFile]:
    """Return the data files of virtual users by workload number; only workloads that have one.

    Raises TaskError with all problems of the files.
    """
    return files_of_workloads(task, user_data)


def faults(task: Task, workload: Workload, runner: Runner) -> Iterator[Problem]:
    """Yield contradictions between `users`, `think` and the runner, and faults of the data file.

    These are keys for closed runners with an open one, `start_rate` with `ramp_up`, a maximum below
    its minimum, and fewer rows than users that do not share them.
    """
    users, think, place = workload.users, workload.think, workload.place
    file, found = user_data(task, workload)
    yield from found
    if runner.OPEN and think:
        yield Problem(
            inside(place, "think"),
            "has no effect with an open runner, whose arrivals do not wait for users: use "
            "self.think() within the scenario, or a closed runner",
        )
    if "start_rate" in users:
        at = inside(inside(place, "users"), "start_rate")
        if runner.OPEN:
            yield Problem(at, "needs a closed runner: arrivals start users here")
        elif runner.ramp_up_s:
            yield Problem(at, "and ramp_up of the runner say the same: give one of the two")
        elif isinstance(runner, SearchingRunner):
            yield Problem(at, "has no effect on trials, whose users begin at once: lengthen settle")
    if "max_rate" in users and runner.OPEN:
        yield Problem(
            inside(inside(place, "users"), "max_rate"),
            "needs a closed runner: an open one has its own rate",
        )
    if think and think.get("max", think["min"]) < think["min"]:
        yield Problem(inside(place, "think"), f"max {think['max']} is less than min {think['min']}")
    if file is not None:
        yield from _too_few(file, workload, runner)


def data_faults(task: Task, plugin: ScenarioPlugin, workload: Workload) -> list[str]:
    """Return the messages of the scenario on arguments that name columns of the users' data file.

    Empty if the file has problems, which are reported elsewhere.
    """
    file, found = user_data(task, workload)
    if found:
        return []  # they are reported elsewhere, and its columns are unknown
    columns = file.arguments if file is not None else ()
    return plugin.cls.check_user_data(plugin.method, workload.args, columns)


def base_faults(plugin: ScenarioPlugin, workload: Workload) -> list[str]:
    """Return the messages of the scenario about a workload without base URL.

    Empty if it has one.
    """
    # a column of a data file may be the base
    if workload.args_from or workload.http.get("base") or workload.http.get("service"):
        return []
    return plugin.cls.check_without_base(plugin.method, workload.args)


def http_faults(workload: Workload) -> Iterator[Problem]:
    """Yield a problem for an invalid base URL and for each invalid header under `http`."""
    place = inside(workload.place, "http")
    base = workload.http.get("base")
    if base and (fault := base_fault(base)):
        yield Problem(inside(place, "base"), fault)
    for fault in header_faults(workload.http.get("headers", {})):
        yield Problem(inside(place, "headers"), fault)
    for key in sorted(names("http_rules") & workload.http.keys())[:1]:
        for where, fault in load_object("http_rules", key).faults(workload.http):
            yield Problem(inside(place, where), fault)
    if is_secret(workload.http.get("by", "")):
        yield Problem(inside(place, "by"), "names a header with a secret, which reports never show")


def method_faults(workload: Workload, plugin: ScenarioPlugin) -> Iterator[Problem]:
    """Yield a problem if `on_start` or `on_stop` is a coroutine and the scenario's method not."""
    asynchronous = plugin.is_coroutine
    for name in ("on_start", "on_stop"):
        method = getattr(plugin.cls, name, None)
        if inspect.iscoroutinefunction(method) and not asynchronous:
            yield Problem(
                inside(workload.place, "scenario"),
                f"{name} of {plugin.name} is `async def`, but {plugin.method} is not: virtual "
                "users are threads, which do not await it",
            )


def _data(workload: Workload) -> Mapping[str, Any]:
    data: Mapping[str, Any] = workload.users.get("data", {})
    return data


def _too_few(file: DataFile, workload: Workload, runner: Runner) -> Iterator[Problem]:
    data = _data(workload)
    shared = data.get("order", "sequential") != "sequential" and not data.get("unique")
    if shared or runner.concurrency <= len(file):
        return
    yield Problem(
        inside(inside(workload.place, "users"), "data"),
        f"{file.name} has {len(file)} rows for {runner.concurrency} virtual users: give more rows,"
        " have fewer users, or let them share rows (order: cycle)",
    )
