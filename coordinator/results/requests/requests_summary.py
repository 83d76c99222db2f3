"""HTTP requests of a workload as part of the JSON object of a run."""

from __future__ import annotations

from typing import Any

from osbench.coordinator.results.requests.action_requests import ActionRequests
from osbench.coordinator.results.requests.workload_requests import WorkloadRequests
from osbench.coordinator.statistics.action_paths import NESTED
from osbench.coordinator.statistics.histogram_times import times_of


def requests_summary(requests: WorkloadRequests) -> dict[str, Any] | None:
    """What the object says of the requests of a workload; None where it made none."""
    if not requests.actions:
        return None
    paths = sorted(requests.actions, key=lambda path: path.split(NESTED))
    return {
        "total": _summed(requests.sum()),
        "actions": {path: _summed(requests.actions[path]) for path in paths},
        "clients": [_client(name, count) for name, count in sorted(requests.clients.items())],
    }


def other_clients(requests: WorkloadRequests) -> list[str]:
    """Sentences on requests that osbench's client could not make, and why."""
    if not requests.clients:
        return []
    whole = requests.sum()
    made = whole.own + whole.others
    return [
        f"{one['client']} made {one['requests']:,} of {made:,} requests, which costs more CPU"
        + (f": {one['why']}" if one["why"] else "")
        for one in (_client(name, count) for name, count in sorted(requests.clients.items()))
    ]


def false_bodies(requests: WorkloadRequests) -> str:
    """A sentence on answers that were not whole, whether or not anything read them; "" for none."""
    count = sum(one.false_bodies for one in requests.actions.values())
    if not count:
        return ""
    return (
        f"{count:,} {'answer has' if count == 1 else 'answers have'} a body that is cut short or "
        "not in the content coding that its head names; an iteration that reads it fails"
    )


def _client(name: str, count: int) -> dict[str, Any]:
    client, _, why = name.partition(": ")
    return {"client": client, "why": why, "requests": count}


def _summed(requests: ActionRequests) -> dict[str, Any]:
    return {
        "requests": requests.own,
        "unanswered": requests.unanswered,
        "sent_twice": requests.twice,
        "false_bodies": requests.false_bodies,
        "new_connections": requests.new,
        "reused_connections": requests.reused,
        "sent_bytes": requests.sent,
        "received_bytes": requests.received,
        "statuses": {str(code): times for code, times in sorted(requests.statuses.items())},
        "by_other_clients": requests.others,
        "phases": {name: times_of(found) for name, found in requests.phases.items()},
    }
