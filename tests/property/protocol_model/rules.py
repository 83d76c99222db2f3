"""The rules of the protocol that can be left out, one at a time, and its timers."""

from __future__ import annotations

from typing import Final

#: Seconds between two beats of a worker.
BEAT_S: Final = 0.5
#: Seconds after which what was not acknowledged is sent again.
RESEND_S: Final = 1.0
#: Seconds for which an answered beat lets a worker start iterations.
LEASE_S: Final = 2.4
#: Silence after which a worker counts as lost; longer than a lease by two clocks and one beat.
LOST_AFTER_S: Final = 3.0
#: How much faster or slower than the true time a clock may run.
DRIFT: Final = 0.01
#: A worker leaves a run whose coordinator it has not heard for as long. (60 in the program)
COORDINATOR_LOST_S: Final = 6.0
#: A run without progress and without workers that are heard ends after it. (10 in the program)
SETTLE_S: Final = 5.0
#: A run that nobody takes work from stops after it. (an option in the program)
ALONE_S: Final = 8.0
#: Work is given to workers that were heard as recently.
FRESH_S: Final = 1.2
#: Arrivals are granted as far ahead of a worker's last sign of life.
HORIZON_S: Final = 1.0
#: An arrival that is later is dropped.
MAX_LAG_S: Final = 1.0

#: Virtual users of a worker; numbers that a worker holds at most before it gets no more.
USERS: Final = 2
STOCK: Final = 5
#: Entries that one read of the results returns at most.
READ: Final = 6

RULES: Final = {
    "challenge": "an offer answers the present challenge of the worker, which is used once",
    "session": "a batch names the present session of the worker",
    "sequence": "the batches of a membership are taken once and in order",
    "pop-first": "what a user has taken out of the stock is started and never given back",
    "journal-first": "a grant is on disk before its batch is sent",
    "consent": "silence moves nothing that was granted",
    "final": "a worker has left before it sends its final block",
    "whole": "a final block counts when all blocks before it are on disk",
    "ack-disk": "a block is acknowledged when it is on disk",
    "ack-gap": "the acknowledgement ends before the first missing block",
    "once": "a block counts once",
    "settled-once": "a number is settled once",
    "takeover": "a resumed coordinator asks its members into new sessions",
    "specification": "a specification has the digest that the offer names",
    "resend-batch": "batches that a beat does not confirm are sent again",
    "resend-block": "blocks that are not acknowledged are sent again",
    "restate": "controls and specifications are written again",
    "bounds": "every wait has an end",
    "version": "a control that is older than the last one is not followed",
    "lease": "an iteration is started only within the lease",
    "lease-sent": "the lease counts from when the answered beat was sent",
    "holders": "a number that somebody may hold is lost, not not_started",
    "one-grant": "a number that a membership still has open is not granted to it again",
    "fold-order": "a resumed coordinator reads grants and blocks in the order of their writing",
    "unknown-member": "a block or will of an unknown membership makes that membership known",
    "page-first": "what a supervisor can read names a number before it is started",
    "ended": "nothing is granted to a membership that has left or left a will",
    "will-once": "a will that is on disk is acknowledged, and is not sent again",
    "watched": "only time in which the coordinator was awake and Redis answered ends a wait",
    "last-look": "what stands in the results when a wait ends is read before the run is closed",
}

#: Rules that no schedule has shown to be necessary; docs/adr/0017 says why they are kept.
NOT_SHOWN: Final = frozenset({"takeover", "version", "will-once"})
