"""Ends a run for its workers after its coordinator has died, so that other runs can use them."""

from __future__ import annotations

from collections.abc import Iterable

from osbench.common.ports import clock as time
from osbench.common.protocol import timers
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Control, Heartbeat
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.store import Store
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader

#: Longest wait for workers to leave, and the pause between two looks, seconds.
WAIT_S = 10.0
LOOK_S = 0.2


class RunningIterations:
    """Finds workers that may still run iterations of a run whose coordinator has died."""

    def __init__(self, heartbeats: HeartbeatReader, run: str, now: float) -> None:
        """Prepare for the run with id `run`.

        `now`: a time at which the run had no coordinator, monotonic seconds; leases end after it.
        """
        self._heartbeats = heartbeats
        self._run = run
        self._leases_end = now + timers.LEASE_S * (1 + timers.DRIFT)
        #: Heartbeats that may have been sent before the leases ended, by incarnation.
        self._early: dict[str, int] = {}

    def at(self, now: float) -> list[Heartbeat]:
        """Return the last heartbeats of workers of the run that may still run iterations at `now`.

        `now` is in monotonic seconds. Until the leases have ended these are all workers of the run;
        later, workers that are busy, and workers that have sent no further heartbeat since a call
        saw them first after that. Raises StoreUnreachable, StoreError.
        """
        serving = [beat for beat in self._heartbeats.present() if beat.run == self._run]
        if now < self._leases_end:
            return serving
        for beat in serving:
            self._early.setdefault(beat.incarnation, beat.beat)
        return [beat for beat in serving if beat.busy or beat.beat <= self._early[beat.incarnation]]


class Dismissal:
    """Ends the memberships of a run that has no coordinator, so that workers are free again.

    A membership is one stay of a worker process in a run. Methods raise StoreUnreachable,
    StoreError.
    """

    def __init__(self, client: Client, signer: Signer, run: str, epoch: int) -> None:
        """Prepare for the run with id `run`; nothing is sent yet.

        `epoch`: number of this coordinator process of the run; earlier ones have smaller numbers.
        """
        self._store = Store(client, run)
        self._heartbeats = HeartbeatReader(client, signer)
        self._signer = signer
        self._run = run
        self._epoch = epoch

    def serving(self) -> list[Heartbeat]:
        """Read the heartbeats of all workers; return the valid and fresh heartbeats of this run."""
        return [beat for beat in self._heartbeats.present() if beat.run == self._run]

    def dismiss(self, memberships: Iterable[tuple[str, str]]) -> tuple[int, int]:
        """Notify workers that the run is over, until all have left or the wait ends.

        `memberships` are pairs of membership id and incarnation (the name of a worker process).
        Workers that send heartbeats of the run are notified too. The wait is the longer of `WAIT_S`
        and `FAREWELL_S`. Of the workers that sent a heartbeat in the run meanwhile, returns the
        number that have left, and that have not.
        """
        members = dict(memberships)
        known: set[str] = set()
        deadline = time.monotonic() + max(WAIT_S, timers.FAREWELL_S)
        while True:
            here = self.serving()
            known |= {beat.incarnation for beat in here}
            sessions = {beat.membership: beat.session for beat in here if beat.membership}
            members |= {beat.membership: beat.incarnation for beat in here if beat.membership}
            records = {
                mid: self._over(mid, name, sessions.get(mid, "")) for mid, name in members.items()
            }
            if records:
                self._store.put_controls(records)
            if not here or time.monotonic() >= deadline:
                return len(known) - len(here), len(here)
            time.sleep(LOOK_S)

    def _over(self, mid: str, incarnation: str, session: str) -> bytes:
        record = Control(
            run=self._run,
            epoch=self._epoch,
            incarnation=incarnation,
            session=session,
            membership=mid,
            # later than all that a coordinator has written in any session
            version=self._epoch << 32,
            over=True,
        )
        return self._signer.sign(Control.KIND, record.body())
