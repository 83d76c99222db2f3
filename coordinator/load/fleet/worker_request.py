"""The workers that a run requests, and messages on workers that it waits for or does not get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from osbench import __version__
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.formatting import plain
from osbench.coordinator.load.fleet.zones import NO_ZONES, ZoneShares, zone_title

#: Workers of another version that are named.
NAMED = 5
#: More than any run has of workers or virtual users.
ANY_NUMBER = 1 << 30


def processes(count: int) -> str:
    """Return "1 worker process", "2 worker processes" and so on."""
    return f"{count} worker {'process' if count == 1 else 'processes'}"


def unverified_message(count: int) -> str:
    """Return a message, with a remedy, on `count` workers that sign with another key."""
    subject = "1 worker signs its heartbeats" if count == 1 else f"{count} workers sign heartbeats"
    return f"{subject} with another key: copy the coordinator's key file to every worker."


def other_version(beats: Sequence[Heartbeat]) -> str:
    """Return a message on workers of another osbench version, which are not used, and a remedy.

    Names the first `NAMED` of them.
    """
    shown = [plain(f"{one.host}:{one.pid} has {one.version}") for one in beats[:NAMED]]
    more = f" and {len(beats) - NAMED} more" if len(beats) > NAMED else ""
    return (
        f"{processes(len(beats))} of another version of osbench than {__version__} "
        f"{'is' if len(beats) == 1 else 'are'} not used ({', '.join(shown)}{more}): install the "
        "same version there."
    )


def not_joined(incarnations: Iterable[str]) -> str:
    """Return a message on workers that were invited and did not join in time.

    Names the first `NAMED` of them, without the random part of their names.
    """
    # the name without its random part
    names = sorted(plain(one.rpartition(".")[0]) for one in incarnations)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (
        f"{processes(len(names))} that seemed free did not join in time "
        f"({', '.join(names[:NAMED])}{more}): going on without."
    )


@dataclass(frozen=True, kw_only=True)
class WorkerRequest:
    """The workers that a run requests, and how long it waits for them."""

    #: Worker processes, None for all that are free.
    count: int | None
    #: Worker processes without which the run cannot begin.
    least: int
    #: Virtual users that they have to carry, as threads and as coroutines.
    threads: int
    coroutines: int
    #: Longest wait for them, seconds.
    wait_s: float
    #: Further ones may join under load, so it begins with `least`, whatever users they carry.
    grows: bool = False
    #: They are the run's own (local mode) and come by themselves.
    private: bool = False
    #: Zones that must each have a worker.
    zones: ZoneShares = NO_ZONES

    @property
    def wanted(self) -> int:
        """Number of worker processes to wait for: `count`, or `least` if it is open or may grow."""
        return self.least if self.count is None or self.grows else self.count


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """Workers that have joined for a request, compared with the request.

    Made anew in each look while a run waits; has messages on the wait and on its failure.
    """

    request: WorkerRequest
    #: Worker processes taken, and the virtual users that they carry of each kind.
    got: int
    threads: int
    coroutines: int
    #: Runs that hold other workers, and workers whose heartbeats could not be verified.
    holders: Iterable[str] = ()
    unverified: int = 0
    #: Workers of another version.
    strangers: Sequence[Heartbeat] = ()
    #: Zones of the load without a worker, and zones of which no worker is free either.
    absent: Sequence[str] = ()
    unseen: Sequence[str] = ()
    #: Free workers whose zones have no share.
    unfit: int = 0

    @property
    def carries_users(self) -> bool:
        """Return whether the workers taken carry all virtual users, both threads and coroutines."""
        asked = self.request
        return self.threads >= asked.threads and self.coroutines >= asked.coroutines

    @property
    def is_met(self) -> bool:
        """Return whether there are as many worker processes as wanted, with all virtual users.

        A request that grows needs not all of the users. Each zone must have a worker.
        """
        enough = self.got >= self.request.wanted and not self.absent
        return enough and (self.request.grows or self.carries_users)

    @property
    def is_final(self) -> bool:
        """Return whether no more workers will be taken, because the requested number has joined.

        Then it is True even if they have too few virtual users: no worker is exchanged for a larger
        one. False if no number was requested.
        """
        return self.request.count is not None and self.got >= self.request.count

    @property
    def _scarce(self) -> tuple[int, int]:
        """Virtual users (carried, requested) of the kind that lacks more; (0, 0) without users."""
        asked = self.request
        kinds = [(self.threads, asked.threads), (self.coroutines, asked.coroutines)]
        asked_for = (one for one in kinds if one[1])
        return min(asked_for, key=lambda one: one[0] - one[1], default=(0, 0))

    def waiting(self) -> str:
        """Return a message on a wait: users and processes so far, and why others are not taken."""
        request, (carried, users) = self.request, self._scarce
        of = f" of {request.wanted}" if request.wanted > 1 else ""
        zones = f", none of {', '.join(map(zone_title, self.absent))}" if self.absent else ""
        return (
            f"waiting up to {request.wait_s:g} s for workers: {min(carried, users)} "
            f"of {users} virtual users ({self.got}{of} worker processes){zones}.{self._others()}"
        )

    def refusal(self) -> str:
        """Return the message of the error that ends the run: the lacking workers, and a remedy."""
        request, got, (carried, users) = self.request, self.got, self._scarce
        if request.private:
            return (
                f"{got} of the {processes(request.wanted)} that local mode starts came within "
                f"{request.wait_s:g} s: give them longer with --wait-for-workers, or start fewer "
                "with --workers"
            )
        more = "Start more with osbench-worker"
        if self.unseen:
            lack = f"no free worker of {', '.join(map(zone_title, self.unseen))} within "
            lack += f"{request.wait_s:g} s, which have shares of a load."
            label = f" --label {plain(self.unseen[0])}" if self.unseen[0] else ""
            more = f"Start one of each, such as osbench-worker{label}"
        elif got < request.wanted and (request.count is not None or request.least > 1):
            lack = f"{processes(request.wanted)} requested and {got} free after "
            lack += f"{request.wait_s:g} s."
            if request.count and got:
                more += f", or ask for fewer than --workers {request.count}"
        elif not carried:
            lack = f"no free worker within {request.wait_s:g} s."
        else:
            if request.count is None:
                whose = "the free workers have"
            else:
                whose = f"--workers {request.count} gives it"
                more = "Ask for more with --workers, or start them"
            lack = f"the task asks for {users} virtual users at once and {whose} "
            lack += f"{carried}."
            more += ", or with larger --virtual-users" if users == request.threads else ""
        return f"{lack}{self._others()} {more}; `osbench-coord workers` lists who is there."

    def _others(self) -> str:
        held = ", ".join(sorted(set(self.holders)))
        others = f" Others are in use by run {held}." if held else ""
        others += f" {unverified_message(self.unverified)}" if self.unverified else ""
        if self.unfit:
            verb = "is" if self.unfit == 1 else "are"
            others += f" {processes(self.unfit)} of zones without a share {verb} not used."
        return others + (f" {other_version(self.strangers)}" if self.strangers else "")
