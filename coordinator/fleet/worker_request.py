"""Sentences on workers that a run waits for, or does not get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from osbench import __version__
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.formatting import plain

#: Workers of another version that are named.
NAMED = 5


def processes(count: int) -> str:
    """A number of worker processes, in words."""
    return f"{count} worker {'process' if count == 1 else 'processes'}"


def unverified(count: int) -> str:
    """A sentence on heartbeats that were refused."""
    subject = "1 worker signs its heartbeats" if count == 1 else f"{count} workers sign heartbeats"
    return f"{subject} with another key: copy the coordinator's key file to every worker."


def other_version(beats: Sequence[Heartbeat]) -> str:
    """A sentence on workers of another version of osbench, which are not used."""
    shown = [plain(f"{one.host}:{one.pid} has {one.version}") for one in beats[:NAMED]]
    more = f" and {len(beats) - NAMED} more" if len(beats) > NAMED else ""
    return (
        f"{processes(len(beats))} of another version of osbench than {__version__} "
        f"{'is' if len(beats) == 1 else 'are'} not used ({', '.join(shown)}{more}): install the "
        "same version there."
    )


def not_joined(incarnations: Iterable[str]) -> str:
    """A sentence on workers that were asked to join and did not answer."""
    # the name without its random part
    names = sorted(plain(one.rpartition(".")[0]) for one in incarnations)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (
        f"{processes(len(names))} that seemed free did not join in time "
        f"({', '.join(names[:NAMED])}{more}): going on without."
    )


@dataclass(frozen=True, kw_only=True)
class WorkerRequest:
    """The workers that a run asks for."""

    #: Worker processes, None for all that are free.
    count: int | None
    #: Worker processes without which the run cannot begin.
    least: int
    #: Virtual users that they have to carry, as threads and as coroutines.
    threads: int
    coroutines: int
    #: Longest wait for them, seconds.
    wait_s: float
    #: They are the run's own (local mode) and come by themselves.
    private: bool = False

    @property
    def wanted(self) -> int:
        """Worker processes to wait for."""
        return self.least if self.count is None else self.count


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """What a request has got so far."""

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

    @property
    def carries_users(self) -> bool:
        """The workers that were taken carry all virtual users."""
        asked = self.request
        return self.threads >= asked.threads and self.coroutines >= asked.coroutines

    @property
    def is_met(self) -> bool:
        """The request has what it asks for."""
        return self.got >= self.request.wanted and self.carries_users

    @property
    def is_final(self) -> bool:
        """The request gets no more workers: none is exchanged for a larger one."""
        return self.request.count is not None and self.got >= self.request.count

    @property
    def _scarce(self) -> tuple[int, int]:
        """Virtual users carried and asked for, of the kind that lacks more."""
        asked = self.request
        kinds = [(self.threads, asked.threads), (self.coroutines, asked.coroutines)]
        return min((one for one in kinds if one[1]), key=lambda one: one[0] - one[1])

    def waiting(self) -> str:
        """What the run waits for."""
        request, (carried, users) = self.request, self._scarce
        of = f" of {request.wanted}" if request.wanted > 1 else ""
        return (
            f"waiting up to {request.wait_s:g} s for workers: {min(carried, users)} "
            f"of {users} virtual users ({self.got}{of} worker processes).{self._others()}"
        )

    def refusal(self) -> str:
        """Why the run cannot begin, and what to do."""
        request, got, (carried, users) = self.request, self.got, self._scarce
        if request.private:
            return (
                f"{got} of the {processes(request.wanted)} that local mode starts came within "
                f"{request.wait_s:g} s: give them longer with --wait-for-workers, or start fewer "
                "with --workers"
            )
        more = "Start more with osbench-worker"
        if got < request.wanted and (request.count is not None or request.least > 1):
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
        """Sentences on workers that are there and cannot be taken; "" where there are none."""
        held = ", ".join(sorted(set(self.holders)))
        others = f" Others are in use by run {held}." if held else ""
        others += f" {unverified(self.unverified)}" if self.unverified else ""
        return others + (f" {other_version(self.strangers)}" if self.strangers else "")
