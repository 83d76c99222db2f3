"""The HTTP requests of a workload by atomic action, and by the client that made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.blocks import Columns
from osbench.common.protocol.exchanges import action_lines
from osbench.coordinator.results.requests.action_requests import ActionRequests
from osbench.coordinator.statistics.groups import grouped

Ints = NDArray[np.int64]

#: What requests that are made in no action are counted for.
NO_ACTION = "(in no action)"
#: Actions kept apart, and the name of those beyond.
ACTIONS = 200
OTHER_ACTIONS = "(other actions)"
#: Clients and why they made requests, likewise.
CLIENTS = 50
OTHER_CLIENTS = "(other clients)"


class WorkloadRequests:
    """Counts requests; memory does not grow with their number."""

    def __init__(self) -> None:
        #: By the path of the innermost action.
        self.actions: dict[str, ActionRequests] = {}
        #: Requests of other clients than osbench's, by "client: why".
        self.clients: Counter[str] = Counter()

    def add(self, columns: Columns, numbers: Ints, paths: Sequence[str]) -> None:
        """Add those of some rows; `numbers` has the number in `paths` of each of their actions."""
        exchanges, rows = columns.exchanges, columns.exchanged
        action = exchanges["action"].astype(np.int64)
        inside = action >= 0
        path = np.full(len(exchanges), len(paths))
        lines = action_lines(rows[inside], columns.actions) + action[inside]
        path[inside] = numbers[lines]
        names = [*paths, NO_ACTION]
        for number, chosen in grouped(path):
            self._action(names[number]).add(exchanges[chosen])
        client = exchanges["client"]
        if client.max() >= 0:
            for number, count in enumerate(np.bincount(client[client >= 0]).tolist()):
                if count:
                    self._count(columns.names[number], count)

    def sum(self) -> ActionRequests:
        """Those of all actions together."""
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
