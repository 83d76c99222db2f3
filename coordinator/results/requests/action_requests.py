"""The HTTP requests of one atomic action: phases, connections and bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.histogram import Histogram
from osbench.common.protocol.exchanges import FALSE_BODY, OWN_TWICE, PHASES

#: Attributes that are numbers.
_COUNTS = (
    "false_bodies",
    "new",
    "others",
    "received",
    "reused",
    "sent",
    "twice",
    "unanswered",
)


class ActionRequests:
    """What requests add up to; phases and bytes are of those that osbench's client made."""

    __slots__ = (*_COUNTS, "phases", "statuses")

    def __init__(self) -> None:
        #: By phase, nanoseconds, of the requests in which it took place.
        self.phases = {phase: Histogram() for phase in PHASES}
        #: Requests for which a connection was opened; those answered over a kept one.
        self.new = 0
        self.reused = 0
        #: Requests whose answer did not come, or not to its end.
        self.unanswered = 0
        #: Requests that were sent a second time, because a kept connection ended without an answer.
        self.twice = 0
        #: Answers, of other clients too, whose body was cut short or not in its content codings.
        self.false_bodies = 0
        #: Bytes with their heads, without TLS.
        self.sent = 0
        self.received = 0
        #: Answers by status code.
        self.statuses: Counter[int] = Counter()
        #: Requests of other clients.
        self.others = 0

    @property
    def own(self) -> int:
        """Requests that osbench's client made."""
        return self.phases["rest"].count + self.unanswered

    def add(self, exchanges: NDArray[Any]) -> None:
        """Add requests (`osbench.common.protocol.exchanges.EXCHANGE`)."""
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
        self.twice += int(np.count_nonzero(exchanges["client"] == OWN_TWICE))
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
        """Add the requests of another action."""
        for phase, found in self.phases.items():
            found.merge(other.phases[phase])
        self.statuses.update(other.statuses)
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
