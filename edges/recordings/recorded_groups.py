"""Recorded requests that were under way at once, as groups of a flow: steps with `parallel`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from osbench.coordinator.task.taskfile.flow_task import WrittenStep
from osbench.edges.recordings.har_file import RecordedRequest

#: Most requests of a group at the same time: browsers open six connections to a host.
_AT_ONCE = 6
_HTML = frozenset({"text/html", "application/xhtml+xml"})

_Member = tuple[RecordedRequest, dict[str, Any], list[str]]


def grouped_steps(
    requests: Sequence[RecordedRequest], steps: Sequence[WrittenStep]
) -> list[WrittenStep]:
    """Return steps in which each run of requests that were all under way at once is one group.

    `steps` has the step of each request. Pages are in no group: a browser may request the parts of
    a page before its last byte. A request without a time, or with a value from the response of a
    member, is not in the group. Steps that only have notes come before the group around them.
    """
    found: list[WrittenStep] = []
    group: list[_Member] = []
    for request, step in zip(requests, steps, strict=True):
        if step.keys is None:
            found.append(step)
            continue
        if group and not _joins(request, step.keys, group):
            found.append(_step_of(group))
            group = []
        group.append((request, step.keys, step.notes))
    if group:
        found.append(_step_of(group))
    return found


def _joins(request: RecordedRequest, keys: dict[str, Any], group: Sequence[_Member]) -> bool:
    ends = [
        one.started_at + one.took_s
        for one, _, _ in group
        if one.started_at is not None and not _is_page(one)
    ]
    if request.started_at is None or _is_page(request) or len(ends) < len(group):
        return False
    if request.started_at >= min(ends):
        return False
    saved = {name for _, member, _ in group for name in member.get("save", ())}
    used = set(re.findall(r"\bsaved\.(\w+)", repr(keys)))
    return not saved & used


def _is_page(one: RecordedRequest) -> bool:
    return one.resource == "document" or one.response_type in _HTML


def _step_of(group: Sequence[_Member]) -> WrittenStep:
    """Return the step of one request as it is, and several as the members of a group."""
    members = [dict(keys) for _, keys, _ in group]
    notes = [note for _, _, some in group for note in some]
    if len(members) == 1:
        return WrittenStep(keys=members[0], notes=notes)
    thinks = [member.pop("think", 0) for member in members]
    keys: dict[str, Any] = {
        "name": f"{members[0]['name']} and {len(members) - 1} more",
        "parallel": members,
    }
    if len(members) > _AT_ONCE:
        keys["at_once"] = _AT_ONCE
    if thinks[-1]:
        keys["think"] = thinks[-1]
    return WrittenStep(keys=keys, notes=notes)
