"""The workers that a run has taken: gathered, polled, kept, released."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from osbench.common.errors import FleetError
from osbench.common.protocol import broker, redis_keys
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client, reached
from osbench.coordinator.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.fleet.worker_request import Shortage, WorkerRequest, processes

#: A poll that comes later than this after the previous one counts as this long: a coordinator
#: that slept declares no worker lost.
LONGEST_POLL_S = 1.0
#: A wait for workers that is longer than this is reported: those of local mode come in less.
SILENT_S = 2.0


class WorkerPool:
    """Takes workers for a run, keeps them marked as its own, and reads their heartbeats."""

    def __init__(self, client: Client, heartbeats: HeartbeatReader, run_id: str) -> None:
        self._client = client
        self._heartbeats = heartbeats
        self._run = run_id
        #: By incarnation; a worker that is lost stays.
        self.workers: dict[str, WorkerHandle] = {}
        self._polled_at = time.monotonic()
        self._renewed_at = 0.0

    @property
    def refused(self) -> int:
        """Heartbeats that could not be verified."""
        return self._heartbeats.refused

    @property
    def present(self) -> list[WorkerHandle]:
        """The workers that are not fenced."""
        return [worker for worker in self.workers.values() if worker.present]

    def serving(self, workload: int) -> list[WorkerHandle]:
        """The workers of a workload that are not fenced."""
        return [worker for worker in self.present if worker.workload == workload]

    def gather(
        self, request: WorkerRequest, check: Callable[[], None], say: Callable[[str], None]
    ) -> None:
        """Take free workers until the request is met.

        Waits up to `wait_s`, and says so where it takes long; `check` may raise meanwhile. Raises
        FleetError, which names the runs that hold other workers.
        """
        begun = time.monotonic()
        said = ""
        while True:
            check()
            shortage = self._take_free(request)
            waited_s = time.monotonic() - begun
            if shortage.got >= request.wanted and shortage.carried >= request.users:
                if said:
                    say(f"{processes(shortage.got)} after {waited_s:.0f} s: going on")
                return
            # none of those taken is exchanged for a larger one
            full = request.count is not None and shortage.got >= request.count
            if full or waited_s >= request.wait_s:
                self.release()
                raise FleetError(shortage.refusal())
            line = shortage.waiting()
            if waited_s >= SILENT_S and line != said and not request.private:
                said = line
                say(line)
            time.sleep(0.1)

    def _take_free(self, request: WorkerRequest) -> Shortage:
        present = self._heartbeats.present()
        for beat, holder in present:
            enough = request.count is not None and len(self.workers) >= request.count
            if not holder and not enough and beat.state == "idle":
                self._take(beat)
        return Shortage(
            request=request,
            got=len(self.workers),
            carried=sum(worker.beat.capacity for worker in self.workers.values()),
            holders={holder for _, holder in present if holder and holder != self._run},
            unverified=self._heartbeats.unverified,
        )

    def _take(self, beat: Heartbeat) -> WorkerHandle | None:
        with reached():
            taken = self._client.set(
                redis_keys.busy(beat.incarnation), self._run, nx=True, ex=redis_keys.BUSY_TTL_S
            )
            # a reply that was lost: the mark is ours all the same
            if not taken:
                taken = self._client.get(redis_keys.busy(beat.incarnation)) == self._run.encode()
        if not taken or beat.incarnation in self.workers:
            return None
        worker = self.workers[beat.incarnation] = WorkerHandle(beat)
        return worker

    def adopt(self, count: int) -> list[WorkerHandle]:
        """Take up to `count` of the workers that are free now."""
        found: list[WorkerHandle] = []
        for beat, holder in self._heartbeats.present():
            if not holder and beat.state == "idle" and len(found) < count:
                worker = self._take(beat)
                if worker is not None:
                    found.append(worker)
        return found

    def poll(self) -> None:
        """Read the workers' heartbeats. Raises StoreAway: then no worker's silence grows."""
        if not self.workers:
            return
        names = list(self.workers)
        beats = self._heartbeats.of(names)
        if time.monotonic() - self._renewed_at > redis_keys.BUSY_TTL_S / 6:
            self._renew(names)
        now = time.monotonic()
        since_s = min(now - self._polled_at, LONGEST_POLL_S)
        self._polled_at = now
        for name, beat in zip(names, beats, strict=True):
            self.workers[name].hear(beat, since_s)

    def _renew(self, names: Sequence[str]) -> None:
        with reached():
            pipe = self._client.pipeline(transaction=False)
            for name in names:
                if self.workers[name].present:
                    pipe.set(redis_keys.busy(name), self._run, ex=redis_keys.BUSY_TTL_S)
            pipe.execute()
        self._renewed_at = time.monotonic()

    def forget(self, incarnation: str) -> None:
        """Delete the queue and the heartbeat of a worker that is lost."""
        broker.forget(self._client, incarnation)

    def release(self) -> None:
        """Free the workers of this run."""
        for name in self.workers:
            with reached():
                # a mark that expired may be another run's by now
                if self._client.get(redis_keys.busy(name)) == self._run.encode():
                    self._client.delete(redis_keys.busy(name))
