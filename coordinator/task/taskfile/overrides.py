"""Applies overrides of the command line, `--set subtask.workload.key=value`, to a document."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from osbench.common.errors import Problem
from osbench.coordinator.task.taskfile import document
from osbench.coordinator.task.taskfile.places import shown_value
from osbench.coordinator.task.taskfile.schema.schema_errors import near


class _Refused(Exception):
    """Raised if an override cannot be applied; the message is the reason."""


def override(value: Any, texts: Sequence[str]) -> tuple[Any, list[Problem]]:
    """Return a copy of a task's document with overrides applied, and the problems of refused ones.

    Each of `texts` is an override `subtask.workload.key=value`. Subtask and workload are given by
    position, from 0, or by title and by name or scenario. The key is a key of the workload, such as
    `args` or `runner`, followed by keys within it. The value is read as YAML.
    """
    changed = copy.deepcopy(value)
    problems = []
    for text in texts:
        path, equals, written = text.partition("=")
        try:
            if not equals:
                raise _Refused("write subtask.workload.key=value")
            given, faults = document.parse_document(written)
            if faults:
                raise _Refused(f"the value {'; '.join(map(str, faults))}")
            _set_at_path(changed, path, given)
        except _Refused as refusal:
            problems.append(Problem(f"--set {path}", str(refusal)))
    return changed, problems


def _set_at_path(value: Any, path: str, given: Any) -> None:
    subtasks = list(_subtasks(value))
    subtask, rest = _find("subtask", [(title,) for title, _ in subtasks], path)
    workloads = subtasks[subtask][1]
    names = [(str(entry.get("name") or ""), scenario) for scenario, entry in workloads]
    workload, rest = _find("workload", names, rest)
    scenario, target = workloads[workload]
    if not rest:
        raise _Refused("a key must follow the workload, as in args.sleep or runner.times")
    keys = _keys_1(target, rest) if "scenario" not in target else _keys_2(target, scenario, rest)
    _set_at_keys(target, keys, given)


def _subtasks(value: Any) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Yield title and workloads of each subtask; in version 1 each key with a list is a subtask.

    A workload is a pair: name of its scenario, its mapping in the document (not a copy). Subtasks
    and workloads are skipped unless they are mappings; `workloads` is empty unless it is a list.
    """
    if not isinstance(value, dict):
        return
    if "subtasks" not in value:
        for name, items in value.items():
            if isinstance(items, list):
                yield name, [(name, item) for item in items if isinstance(item, dict)]
        return
    subtasks = value["subtasks"]
    for subtask in subtasks if isinstance(subtasks, list) else []:
        if isinstance(subtask, dict):
            inner = subtask.get("workloads", [subtask])
            yield (
                str(subtask.get("title", "")),
                [(_scenario(one), one) for one in inner if isinstance(one, dict)]
                if isinstance(inner, list)
                else [],
            )


def _scenario(workload: dict[str, Any]) -> str:
    named = workload.get("scenario")
    return str(next(iter(named), "")) if isinstance(named, dict) else ""


def _find(what: str, called: Sequence[tuple[str, ...]], path: str) -> tuple[int, str]:
    """Return the index of the element that a path begins with, and the rest of the path.

    `called`: the names of each element; a number in the path is an index. If several names fit, the
    longest counts. `what`: the kind of element, for messages. Raises _Refused if no element fits,
    or several have that name.
    """
    number = re.match(r"(\d+)(?:\.|$)", path)
    if number:
        position = int(number[1])
        if position >= len(called):
            raise _Refused(f"there is no {what} {position}: they are 0 to {len(called) - 1}")
        return position, path[number.end() :]
    # names may contain dots, and one may be a prefix of another
    names = [name for own in called for name in dict.fromkeys(own) if name]
    fitting = [name for name in names if path == name or path.startswith(f"{name}.")]
    if not fitting:
        raise _Refused(f"there is no {what} {path.partition('.')[0]!r}{near(path, names)}")
    name = max(fitting, key=len)
    if names.count(name) > 1:
        at = ", ".join(str(position) for position, own in enumerate(called) if name in own)
        raise _Refused(f"{name!r} names several {what}s, take a position: {at}")
    found = next(position for position, own in enumerate(called) if name in own)
    return found, path[len(name) + 1 :]


def _keys_1(workload: dict[str, Any], rest: str) -> list[str]:
    first, *more = rest.split(".")
    if first == "runner" and more and isinstance(workload.get("runner"), dict):
        more = more[more[0] == workload["runner"].get("type") :]
    return ["context" if first == "contexts" else first, *more]


def _keys_2(workload: dict[str, Any], scenario: str, rest: str) -> list[str]:
    first, *more = rest.split(".")
    if first == "args":
        return ["scenario", scenario, *more]
    if first == "runner" and more:
        runner = workload.get("runner")
        name = str(next(iter(runner))) if isinstance(runner, dict) and runner else "serial"
        return ["runner", name, *more[more[0] == name :]]
    return ["contexts" if first == "context" else first, *more]


def _set_at_keys(target: Any, keys: Sequence[str], given: Any) -> None:
    for key, following in zip(keys, [*keys[1:], None], strict=True):
        at: str | int = key
        if isinstance(target, list):
            if not key.isdecimal() or int(key) >= len(target):
                raise _Refused(f"there is no {key!r} in a list of {len(target)}; count from 0")
            at = int(key)
        elif not isinstance(target, dict):
            raise _Refused(f"{key!r} cannot be set in {shown_value(target)}")
        if following is None:
            target[at] = given
            return
        if isinstance(target, dict) and target.get(key) is None:
            target[key] = {}
        target = target[at]
