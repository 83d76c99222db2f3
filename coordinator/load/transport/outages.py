"""Outages of Redis and of the broker during a run, and their messages for the report."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from osbench.common.errors import BrokerAway, StoreLost, StoreUnreachable
from osbench.common.ports import clock as time
from osbench.common.protocol import timers

LOG = logging.getLogger(__name__)

#: How long a run that was interrupted waits for a server, seconds.
INTERRUPTED_S = 3.0
#: The report mentions a server that was unreachable for so long, seconds.
OUTAGE_S = 1.0


@dataclass(frozen=True)
class Outage:
    """Outages of one server (Redis or the broker): its name and address, and how long each lasted.

    `lasted_s` is in seconds. `str` gives the message for the report.
    """

    server: str
    is_broker: bool
    lasted_s: tuple[float, ...] = ()

    def again(self, lasted_s: float) -> Outage:
        """Return a copy with one more outage of `lasted_s` seconds."""
        return replace(self, lasted_s=(*self.lasted_s, lasted_s))

    def __str__(self) -> str:
        often = "" if len(self.lasted_s) == 1 else f"{len(self.lasted_s)} times, in all "
        lasted = f"{often}for {sum(self.lasted_s):.0f} s"
        if self.is_broker:
            return (
                f"the coordinator could not send to {self.server} {lasted}: workers got no "
                "iterations in that time"
            )
        return (
            f"the coordinator could not reach or use {self.server} {lasted}: workers that could "
            f"not reach it started no iterations after {timers.LEASE_S:g} s"
        )


class Outages:
    """The servers that are unreachable now: Redis, or a separate broker.

    `bool` is True if there is such a server.
    """

    def __init__(self, note: Callable[[Outage, float], None], patience_s: float) -> None:
        """Begin without outages.

        `note` is called at the end of an outage of `OUTAGE_S` or more, with the server and seconds.
        `patience_s`: longest outage that a run waits for, seconds.
        """
        self._note = note
        self._patience_s = patience_s
        #: When Redis last replied, and since when each server is unreachable, monotonic seconds.
        self._reached_at = time.monotonic()
        self._away: dict[Outage, float] = {}
        #: When Ctrl-C was first seen during an outage, monotonic; 0 before.
        self._interrupted_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._away)

    @property
    def servers(self) -> str:
        """Names and addresses of the unreachable servers, joined by "and"; "" if there are none."""
        return " and ".join(one.server for one in self._away)

    @property
    def redis(self) -> str:
        """Name and address of the run's Redis if it is unreachable; else ""."""
        return "".join(one.server for one in self._away if not one.is_broker)

    def take(self, error: StoreUnreachable) -> None:
        """Note that the server of `error` did not respond.

        The first time in an outage, logs a warning; later calls change nothing.
        """
        server = _server(error)
        if server not in self._away:
            lasts = "work" if server.is_broker else "lease"
            LOG.warning("%s; workers continue for as long as their %s lasts", error, lasts)
            self._away[server] = time.monotonic()

    def lose_patience(self, error: StoreUnreachable, *, interrupted: bool) -> None:
        """Raise StoreLost if the server of `error` is unreachable for longer than `patience_s`.

        `interrupted` (by Ctrl-C): also raises `INTERRUPTED_S` seconds after the first such call.
        Call `take` before: raises KeyError for an unknown server.
        """
        now = time.monotonic()
        if now - self._away[_server(error)] > self._patience_s:
            raise StoreLost(f"{error}, for {self._patience_s:g} s ([messaging] patience_s)")
        if interrupted:
            self._interrupted_at = self._interrupted_at or now
            if now - self._interrupted_at > INTERRUPTED_S:
                raise StoreLost(f"{error}, and the run was interrupted")

    def redis_answers(self) -> None:
        """Note that Redis responds and accepts writes; ends its outage.

        An outage of `OUTAGE_S` or more is reported by `note`; it counts from the last call before
        it. A full Redis still responds, but refuses writes: that is an outage, too.
        """
        # nothing is known of the time between two polls
        self._end(self._reached_at, is_broker=False)
        self._reached_at = time.monotonic()

    def broker_answers(self) -> None:
        """Note that the broker accepts messages; ends its outage.

        An outage of `OUTAGE_S` or more is reported by `note`.
        """
        self._end(time.monotonic(), is_broker=True)

    def _end(self, latest_begin: float, *, is_broker: bool) -> None:
        for server in [one for one in self._away if one.is_broker == is_broker]:
            since = min(self._away.pop(server), latest_begin)
            lasted_s = time.monotonic() - since
            if lasted_s >= OUTAGE_S:
                self._note(server, lasted_s)
        if not self._away:
            self._interrupted_at = 0.0


def _server(error: StoreUnreachable) -> Outage:
    return Outage(error.server, isinstance(error, BrokerAway))
