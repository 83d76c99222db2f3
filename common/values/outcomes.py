"""Codes in result rows: outcomes of iterations, and events of virtual users."""

from __future__ import annotations

import enum


class Outcome(enum.IntEnum):
    """The outcome of an iteration: the code in a result row. Reports show `name.lower()`."""

    OK = 1
    FAILED = 2
    TIMED_OUT = 3
    DROPPED_MAX_CONCURRENCY = 4
    DROPPED_CAPACITY = 5
    DROPPED_LATE = 6
    DROPPED_WORKER_LOST = 7
    DROPPED_COORDINATOR_GONE = 8


#: Outcomes of iterations that ran.
RAN = (Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT)

#: Reason word of a dropped arrival by outcome.
DROP_REASONS = {
    Outcome.DROPPED_MAX_CONCURRENCY: "max_concurrency",
    Outcome.DROPPED_CAPACITY: "capacity",
    Outcome.DROPPED_LATE: "late",
    Outcome.DROPPED_WORKER_LOST: "worker_lost",
    Outcome.DROPPED_COORDINATOR_GONE: "coordinator_gone",
}

#: The states whose counts sum to the plan, in the order reports print them.
STATES = ("ok", "failed", "timed_out", "dropped", "lost", "not_started")


class LifeEvent(enum.IntEnum):
    """Events outside of iterations: a virtual user starts or ends, or a runner's own code ends.

    BEGUN, ENDED and SCRIPT_ENDED are successes; the next code is the failure of each.
    """

    BEGUN = 0
    NOT_BEGUN = 1
    ENDED = 2
    NOT_ENDED = 3
    #: An iteration of the user timed out: another takes its place, and keeps nothing of it.
    REPLACED = 4
    #: Code of a runner that starts iterations itself has returned, or raised an exception.
    SCRIPT_ENDED = 5
    SCRIPT_FAILED = 6
