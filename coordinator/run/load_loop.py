"""Conducts the workloads that are under load at once, each on its part of the workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from osbench.common.errors import FleetError, StoreAway, StoreLost
from osbench.coordinator.run.state import RunState
from osbench.coordinator.run.workload import LEAD_S, Conductor

LOG = logging.getLogger(__name__)

#: Length of a turn that has nothing else to wait for than results, and the rhythm of heartbeats.
READ_S = 0.1
POLL_S = 0.5
#: Results are acknowledged after so many seconds, or with the heartbeat after so many bytes.
ACKNOWLEDGE_S = 2.0
ACKNOWLEDGE_BYTES = 1 << 20
#: Longest preparation of a workload on a worker.
PREPARE_S = 120.0


class Concert:
    """One loop reads results and heartbeats, and gives each conductor its turn."""

    def __init__(self, state: RunState, conductors: Sequence[Conductor]) -> None:
        self._state = state
        self._conductors = tuple(conductors)
        self._polled = self._read_at = self._acknowledged = 0.0
        #: Since when Redis does not answer, monotonic.
        self._away_since: float | None = None

    def run(self) -> None:
        """Prepare, load, settle; returns when every iteration has its state.

        Raises FleetError, StoreLost.
        """
        self._prepare()
        if self._state.interruption.level:
            for conductor in self._conductors:
                conductor.call_off()
                conductor.end_hooks()
            return
        t0_at = self._state.offset.now_s() + LEAD_S
        for conductor in self._conductors:
            self._start(conductor, t0_at)
        playing = list(self._conductors)
        while playing:
            for conductor in [one for one in playing if one.finished()]:
                conductor.settle()
                playing.remove(conductor)
            try:
                if playing:
                    self._turn(playing)
            except StoreAway as error:
                self._wait_for_store(error, playing)
        for conductor in self._conductors:
            conductor.end_hooks()

    def _start(self, conductor: Conductor, t0_at: float) -> None:
        try:
            conductor.start(t0_at)
        except StoreAway as error:
            # workers hear of it with a later turn; that they start late is then start lag
            self._wait_for_store(error, ())

    def _prepare(self) -> None:
        state = self._state
        for conductor in self._conductors:
            self._patiently(conductor.prepare)
        deadline = time.monotonic() + PREPARE_S
        while not all(conductor.crew.ready for conductor in self._conductors):
            if state.interruption.level:
                return
            self._patiently(self._gather)
            if time.monotonic() > deadline:
                slow = " and ".join(
                    conductor.crew.delay()
                    for conductor in self._conductors
                    if not conductor.crew.ready
                )
                raise FleetError(f"within {PREPARE_S:g} s {slow}")

    def _gather(self) -> None:
        state = self._state
        state.reader.take_in(0.02)
        if state.away:
            self._reconnected()
        state.check()
        state.fleet.poll()
        for conductor in self._conductors:
            conductor.gather()

    def _patiently(self, step: Callable[[], None]) -> None:
        """Do what may be done again until Redis lets it be done."""
        while True:
            try:
                step()
            except StoreAway as error:
                self._wait_for_store(error, ())
            else:
                return

    def _turn(self, playing: Sequence[Conductor]) -> None:
        state = self._state
        self._take_in(READ_S if playing[0].elapsed() > 0 else 0.02)
        if state.away:
            self._reconnected()
        now = time.monotonic()
        poll = now - self._polled >= POLL_S
        if poll:
            self._polled = now
            state.check()
            state.fleet.poll()
        for conductor in playing:
            conductor.turn(poll=poll)
        if poll:
            self._acknowledge(now)

    def _take_in(self, wait_s: float) -> None:
        """Read results, not more often than is of use: each read is a command to Redis."""
        pause_s = self._read_at + wait_s - time.monotonic()
        if pause_s > 0 and not self._state.channel.behind:
            time.sleep(pause_s)
        self._read_at = time.monotonic()
        self._state.reader.take_in(wait_s)

    def _acknowledge(self, now: float) -> None:
        """Let workers and Redis forget what is on disk; who leaves waits for it."""
        state = self._state
        members = [member for member in state.fleet.members.values() if not member.fenced]
        much = state.channel.untrimmed >= ACKNOWLEDGE_BYTES
        if not (
            much
            or now - self._acknowledged >= ACKNOWLEDGE_S
            or any(member.leaving for member in members)
        ):
            return
        state.controls.change(members)
        state.channel.trim()
        self._acknowledged = now

    def _wait_for_store(self, error: StoreAway, playing: Sequence[Conductor]) -> None:
        if not self._state.away:
            LOG.warning("%s; workers go on with what they have", error)
        self._state.away = True
        self._state.check()
        if self._state.interruption.level >= 2:
            raise error
        self._lose_patience(error)
        for conductor in playing:
            conductor.show()
        time.sleep(0.2)

    def _lose_patience(self, error: StoreAway) -> None:
        """Give up after a while; Redis and a broker beside it may be away one without the other."""
        now, patience_s = time.monotonic(), self._state.patience_s
        self._away_since = self._away_since or now
        if max(now - self._away_since, self._state.channel.broker_away_s) > patience_s:
            raise StoreLost(f"{error}, for {patience_s:g} s ([messaging] patience_s)")

    def _reconnected(self) -> None:
        self._away_since = None
        if self._state.greet() != self._state.boot:
            raise StoreLost(
                "Redis was restarted in the middle of the run; what workers had sent and we "
                "had not read may be gone. The run directory keeps what was taken"
            )
        self._state.away = False
