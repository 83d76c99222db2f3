"""Hints for names and keys of other load generators: the spelling in osbench."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from osbench.common.errors import PluginError

#: The right place or name of keys that no runner has, by key.
RUNNER_KEYS: Mapping[str, str] = {
    "users": "the number of virtual users is `concurrency`",
    "vus": "the number of virtual users is `concurrency`",
    "spawn_rate": "`users: {start_rate: N}` of the workload, next to `runner`",
    "iterations": "the number of iterations is `times`",
    "requests": "the number of iterations is `times`",
    "rate": "arrivals per second are `rps` of the runner rps",
    "target": "`target` is a key of a stage, in the runner stages",
    "duration": "a duration ends constant_for_duration and, for arrivals, rps and stages",
    "time": "the length of a load is `duration` of the runner constant_for_duration",
    "run_time": "the length of a load is `duration` of the runner constant_for_duration",
    "think": "`think: {min: 1s}` is a key of the workload, next to `runner`",
    "think_time": "`think: {min: 1s}` is a key of the workload, next to `runner`",
    "warmup": "`warmup` is a key of the workload, next to `runner`",
}

_CONSTANT = "constant_for_duration: {concurrency: 50, duration: 30s}"
_RPS = "rps: {rps: 20, duration: 30s}"
_STAGES = "stages: {stages: [{duration: 1m, target: 50}]}"
_USER_STAGES = "user_stages: {stages: [{duration: 1m, users: 50}]}"

#: By name of something like a runner elsewhere: the runner.
_RUNNERS: Mapping[str, str] = {
    "constant_arrival_rate": _RPS,
    "constant_rps": _RPS,
    "constant_vus": _CONSTANT,
    "duration": _CONSTANT,
    "per_vu_iterations": "constant: {concurrency: 50, times: 1000}",
    "ramping_arrival_rate": _STAGES,
    "ramping_vus": _USER_STAGES,
    "shared_iterations": "constant: {concurrency: 50, times: 1000}",
    "spawn_rate": _CONSTANT,
    "users": _CONSTANT,
    "vus": _CONSTANT,
}

_FAILURES = "failure_rate: {max: 1}"
#: By name of something like an SLA criterion elsewhere: the criterion.
_CRITERIA: Mapping[str, str] = {
    "avg": "max_avg_duration: 2",
    "error_rate": _FAILURES,
    "errors": _FAILURES,
    "failures": _FAILURES,
    "http_req_duration": "percentile: {p: 95, max_s: 500ms}",
    "http_req_failed": _FAILURES,
    "max": "max_seconds_per_iteration: 5",
    "max_duration": "max_seconds_per_iteration: 5",
    "mean": "max_avg_duration: 2",
    "rps": "throughput: {min: 100}",
}
_PERCENTILE = re.compile(r"p(?:ercentile)?_?\(?(\d{1,2}(?:\.\d+)?)\)?", re.IGNORECASE)

#: Keys of a workload; a file that has them at its top has no subtask around them.
_OF_WORKLOADS = ("scenario", "runner", "workloads", "sla", "stages", "users", "think")


def runner_hint(name: str) -> str:
    """Return ": write ..." with the runner that is called `name` in another load generator.

    "" if unknown. For the end of a message about an unknown runner.
    """
    return _write(_RUNNERS.get(name.lower().replace("-", "_"), ""))


def criterion_hint(name: str, config: Any) -> str:
    """Return ": write ..." with the SLA criterion that a user of another load generator may mean.

    `config` is its configuration in the task, used as the limit. "" if unknown. For the end of a
    message.
    """
    if found := _PERCENTILE.fullmatch(name):
        limit = config if isinstance(config, int | float | str) else "500ms"
        return _write(f"percentile: {{p: {found[1]}, max_s: {limit}}}")
    return _write(_CRITERIA.get(name.lower(), ""))


def without_subtasks(document: Mapping[str, Any]) -> str:
    """Return a message if a document has keys of a workload instead of `subtasks`; else ""."""
    keys = [key for key in _OF_WORKLOADS if key in document]
    if not keys or "subtasks" in document:
        return ""
    named = " and ".join(f"`{key}`" for key in keys[:2])
    belongs = "belong" if len(keys) > 1 else "belongs"
    return (
        f"has no subtasks: {named} {belongs} into one, as in version: 2, title: mine, subtasks:"
        " [{title: first, scenario: {Dummy.dummy: {sleep: 0.1}}, runner: {constant: {times: 10,"
        " concurrency: 2}}}]; `osbench-coord init` writes a file to begin with"
    )


def unknown_name(error: PluginError, hint: str, word: str, name: str) -> str:
    """Return the message on an unknown plug-in: with `hint`, or the text of `error` if that is "".

    `word`: kind of plug-in, such as "runner"; `name`: the unknown name.
    """
    return f"there is no {word} {name!r}{hint}" if hint else str(error)


def _write(spelt: str) -> str:
    return f": write {spelt}" if spelt else ""
