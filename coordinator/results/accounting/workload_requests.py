"""Counts HTTP requests of a workload by atomic action and by client: phases, connections, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.protocol.exchanges import FALSE_BODY, PHASES, action_lines, sent_twice
from osbench.common.values.histogram import Histogram
from osbench.coordinator.results.statistics.action_paths import NESTED, entries_by_group
from osbench.coordinator.results.statistics.percentiles import times_of

#: Attributes that are numbers.
_COUNTS = ("false_bodies", "new", "others", "received", "reused", "sent", "twice", "unanswered")


class ActionRequests:
    """Counts and times of the HTTP requests of one action.

    Phases, connections, statuses and bytes are only of requests by osbench's own client.
    """

    __slots__ = (*_COUNTS, "phases", "statuses")

    def __init__(self) -> None:
        #: By phase, nanoseconds, of the requests in which it took place.
        self.phases = {phase: Histogram() for phase in PHASES}
        #: Requests for which a connection was opened; requests over an idle connection.
        self.new = 0
        self.reused = 0
        #: Requests without a response, or with an incomplete one.
        self.unanswered = 0
        #: Requests that were sent a second time, because an idle connection ended without a
        #: response.
        self.twice = 0
        #: Responses, of other clients too, whose body was cut short or not in its content codings.
        self.false_bodies = 0
        #: Bytes with their heads, without TLS.
        self.sent = 0
        self.received = 0
        #: Responses by status code.
        self.statuses: Counter[int] = Counter()
        #: Requests of other clients.
        self.others = 0

    @property
    def own(self) -> int:
        """Number of requests by osbench's client, with or without a response."""
        return self.phases["rest"].count + self.unanswered

    def add(self, exchanges: NDArray[Any]) -> None:
        """Count HTTP requests, given as rows of `osbench.common.protocol.exchanges.EXCHANGE`."""
        self.false_bodies += int(np.count_nonzero(exchanges["status"] & FALSE_BODY))
        own = exchanges["client"] < 0
        count = int(np.count_nonzero(own))
        if count < len(exchanges):
            self.others += len(exchanges) - count
            exchanges = exchanges[own]
        opened, ended = exchanges["connect"] > 0, exchanges["rest"] > 0
        self.new += int(np.count_nonzero(opened))
        self.reused += int(np.count_nonzero(ended & ~opened))
        self.unanswered += count - int(np.count_nonzero(ended))
        self.twice += int(np.count_nonzero(sent_twice(exchanges["client"])))
        for phase, found in self.phases.items():
            lasted = exchanges[phase]
            found.add(lasted[lasted > 0].astype(np.int64))
        statuses = exchanges["status"] & ~FALSE_BODY
        for code, times in zip(*np.unique(statuses, return_counts=True), strict=True):
            if code:
                self.statuses[int(code)] += int(times)
        self.sent += int(exchanges["sent"].sum())
        self.received += int(exchanges["received"].sum())

    def merge(self, other: ActionRequests) -> None:
        """Add the counts and histograms of `other` to this action's; `other` stays as it is."""
        for phase, found in self.phases.items():
            found.merge(other.phases[phase])
        self.statuses.update(other.statuses)
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


Ints = NDArray[np.int64]

#: Name for requests that are made in no action.
NO_ACTION = "(in no action)"
#: Most actions that are counted separately, and the name for further ones.
ACTIONS = 200
OTHER_ACTIONS = "(other actions)"
#: Clients and why they made requests, likewise.
CLIENTS = 50
OTHER_CLIENTS = "(other clients)"


class WorkloadRequests:
    """Counts the HTTP requests of a workload by action and client, in bounded memory.

    Beyond `ACTIONS` and `CLIENTS` names, requests count under a common name.
    """

    def __init__(self) -> None:
        #: By the path of the innermost action.
        self.actions: dict[str, ActionRequests] = {}
        #: Requests of other clients than osbench's, by "client: why".
        self.clients: Counter[str] = Counter()

    def add(self, columns: Columns, numbers: Ints, paths: Sequence[str]) -> None:
        """Count the HTTP requests of result rows; there must be at least one request.

        `numbers`: for each line of `columns.actions` the index of its path in `paths`, as
        `name_paths` returns them.
        """
        exchanges, rows = columns.exchanges, columns.exchanged
        action = exchanges["action"].astype(np.int64)
        inside = action >= 0
        path = np.full(len(exchanges), len(paths))
        lines = action_lines(rows[inside], columns.actions) + action[inside]
        path[inside] = numbers[lines]
        names = [*paths, NO_ACTION]
        for number, chosen in entries_by_group(path):
            self._action(names[number]).add(exchanges[chosen])
        client = exchanges["client"]
        if client.max() >= 0:
            for number, count in enumerate(np.bincount(client[client >= 0]).tolist()):
                if count:
                    self._count(columns.names[number], count)

    def sum(self) -> ActionRequests:
        """Return a new object with the sums over all actions, and over requests in no action."""
        found = ActionRequests()
        for one in self.actions.values():
            found.merge(one)
        return found

    def _action(self, path: str) -> ActionRequests:
        if path not in self.actions and len(self.actions) >= ACTIONS:
            path = OTHER_ACTIONS
        return self.actions.setdefault(path, ActionRequests())

    def _count(self, client: str, count: int) -> None:
        known = client in self.clients or len(self.clients) < CLIENTS
        self.clients[client if known else OTHER_CLIENTS] += count


def requests_summary(requests: WorkloadRequests) -> dict[str, Any] | None:
    """Return `total`, `actions` by path and `clients` for the summary; None without requests.

    `clients` is a list, sorted by name, of other clients than osbench's.
    """
    if not requests.actions:
        return None
    paths = sorted(requests.actions, key=lambda path: path.split(NESTED))
    return {
        "total": _request_figures(requests.sum()),
        "actions": {path: _request_figures(requests.actions[path]) for path in paths},
        "clients": other_clients(requests),
    }


def other_clients(requests: WorkloadRequests) -> list[dict[str, Any]]:
    """Return `client`, `why` and `requests` of each client other than osbench's, sorted by name."""
    found = []
    for name, number in sorted(requests.clients.items()):
        client, _, why = name.partition(": ")
        found.append({"client": client, "why": why, "requests": number})
    return found


def _request_figures(requests: ActionRequests) -> dict[str, Any]:
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
        "phases": {name: times_of(phase) for name, phase in requests.phases.items()},
    }
