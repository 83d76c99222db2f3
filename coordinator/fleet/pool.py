"""The workers there are, and those a run has taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from osbench.common.errors import FleetError, Untrusted
from osbench.common.protocol import broker, redis_keys
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client, reached
from osbench.coordinator.fleet.worker import Member

#: A poll later than this after the one before counts as this long: who slept ages nobody.
LONGEST_POLL_S = 1.0
#: A wait for workers that is longer than this is told: those of local mode come in less.
SILENT_S = 2.0


def processes(count: int) -> str:
    """So many worker processes, in words."""
    return f"{count} worker {'process' if count == 1 else 'processes'}"


def unverified(count: int) -> str:
    """A sentence on heartbeats that were refused."""
    subject = "1 worker signs its heartbeats" if count == 1 else f"{count} workers sign heartbeats"
    return f"{subject} with another key: copy the coordinator's key file to every worker."


class Fleet:
    """Finds workers by their heartbeats, holds some for a run, notices who falls silent."""

    def __init__(self, client: Client, sealer: Sealer, run_id: str = "") -> None:
        self._client = client
        self._sealer = sealer
        self._run = run_id
        self.members: dict[str, Member] = {}
        #: Heartbeats that could not be verified: in all, and when last all were read.
        self.refused = 0
        self.unverified = 0
        self._polled_at = time.monotonic()
        self._renewed_at = 0.0

    def present(self) -> list[tuple[Heartbeat, str]]:
        """All workers with a valid heartbeat, and the run that holds each or ""."""
        self.unverified = 0
        with reached():
            listed = cast(set[bytes], self._client.smembers(redis_keys.WORKERS))
            names = sorted(name.decode() for name in listed)
            if not names:
                return []
            beats = cast(list[Any], self._client.mget(map(redis_keys.worker, names)))
            holders = cast(list[Any], self._client.mget(map(redis_keys.busy, names)))
            gone = [name for name, data in zip(names, beats, strict=True) if data is None]
            if gone:
                self._client.srem(redis_keys.WORKERS, *gone)
        found = []
        for data, holder in zip(beats, holders, strict=True):
            if data is None:
                continue
            beat = self._read(data)
            if beat is None:
                self.unverified += 1
            else:
                found.append((beat, holder.decode() if holder else ""))
        return found

    def gather(
        self,
        *,
        count: int | None,
        users: int,
        wait_s: float,
        least: int = 1,
        private: bool = False,
        check: Callable[[], None] = lambda: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take free workers: `count` of them, or all, until `least` can carry `users`.

        Waits up to `wait_s`, and says so where it takes long, unless the workers are the run's own
        (`private`) and come by themselves; `check` may raise meanwhile. Raises FleetError, which
        names the runs that hold the others.
        """
        begun = time.monotonic()
        told = ""
        while True:
            check()
            present = self.present()
            for beat, holder in present:
                enough = count is not None and len(self.members) >= count
                if not holder and not enough and beat.state == "idle":
                    self._take(beat)
            carried = sum(member.beat.capacity for member in self.members.values())
            wanted = count if count is not None else least
            waited_s = time.monotonic() - begun
            if len(self.members) >= wanted and carried >= users:
                if told:
                    say(f"{processes(len(self.members))} after {waited_s:.0f} s: going on")
                return
            # none of those taken is exchanged for a larger one
            full = count is not None and len(self.members) >= count
            if full or waited_s >= wait_s:
                self.release()
                if private:
                    raise FleetError(
                        f"{len(self.members)} of the {processes(wanted)} that local mode starts "
                        f"came within {wait_s:g} s: give them longer with --wait-for-workers, or "
                        "start fewer with --workers"
                    )
                raise FleetError(self._too_few(present, count, least, users, wait_s))
            line = self._waiting(present, wanted, users, wait_s)
            if waited_s >= SILENT_S and line != told and not private:
                told = line
                say(line)
            time.sleep(0.1)

    def _take(self, beat: Heartbeat) -> None:
        with reached():
            taken = self._client.set(
                redis_keys.busy(beat.incarnation), self._run, nx=True, ex=redis_keys.BUSY_TTL_S
            )
            # a reply that was lost: the mark is ours all the same
            if not taken:
                taken = self._client.get(redis_keys.busy(beat.incarnation)) == self._run.encode()
        if taken and beat.incarnation not in self.members:
            self.members[beat.incarnation] = Member(beat)

    def _waiting(
        self, present: Sequence[tuple[Heartbeat, str]], wanted: int, users: int, wait_s: float
    ) -> str:
        carried = sum(member.beat.capacity for member in self.members.values())
        of = f" of {wanted}" if wanted > 1 else ""
        return (
            f"waiting up to {wait_s:g} s for workers: {min(carried, users)} of {users} virtual "
            f"users ({len(self.members)}{of} worker processes).{self._others(present)}"
        )

    def _others(self, present: Sequence[tuple[Heartbeat, str]]) -> str:
        """Sentences on workers that are there and cannot be taken; "" where there are none."""
        held = sorted({holder for _, holder in present if holder and holder != self._run})
        others = f" Others are held by run {', '.join(held)}." if held else ""
        return others + (f" {unverified(self.unverified)}" if self.unverified else "")

    def _too_few(
        self,
        present: Sequence[tuple[Heartbeat, str]],
        count: int | None,
        least: int,
        users: int,
        wait_s: float,
    ) -> str:
        carried = sum(member.beat.capacity for member in self.members.values())
        wanted = count if count is not None else least
        got = len(self.members)
        more = "Start more with osbench-worker"
        if got < wanted and (count is not None or least > 1):
            lack = f"{processes(wanted)} asked for and {got} free after {wait_s:g} s."
            more += f", or ask for fewer than --workers {count}" if count and got else ""
        elif not carried:
            lack = f"no free worker within {wait_s:g} s."
        else:
            whose = "the free workers have" if count is None else f"--workers {count} gives it"
            lack = f"the task asks for {users} virtual users at once and {whose} {carried}."
            if count is not None:
                more = "Ask for more with --workers, or start them"
            more += ", or with larger --virtual-users"
        return f"{lack}{self._others(present)} {more}; `osbench-coord workers` lists who is there."

    def adopt(self, count: int) -> list[Member]:
        """Take up to `count` of the workers that are free now."""
        found: list[Member] = []
        for beat, holder in self.present():
            free = not holder and beat.state == "idle" and beat.incarnation not in self.members
            if free and len(found) < count:
                self._take(beat)
                if beat.incarnation in self.members:
                    found.append(self.members[beat.incarnation])
        return found

    def poll(self) -> None:
        """Read the members' heartbeats. Raises StoreAway: then nobody ages."""
        if not self.members:
            return
        names = list(self.members)
        with reached():
            beats = cast(list[Any], self._client.mget([redis_keys.worker(name) for name in names]))
            if time.monotonic() - self._renewed_at > redis_keys.BUSY_TTL_S / 6:
                self._renew(names)
        now = time.monotonic()
        since_s = min(now - self._polled_at, LONGEST_POLL_S)
        self._polled_at = now
        for name, data in zip(names, beats, strict=True):
            self.members[name].hear(self._read(data), since_s)

    def _renew(self, names: Iterable[str]) -> None:
        pipe = self._client.pipeline(transaction=False)
        for name in names:
            if not self.members[name].fenced:
                pipe.set(redis_keys.busy(name), self._run, ex=redis_keys.BUSY_TTL_S)
        pipe.execute()
        self._renewed_at = time.monotonic()

    def forget(self, incarnation: str) -> None:
        """Remove what a given-up worker left."""
        broker.forget(self._client, incarnation)

    def release(self) -> None:
        """Free the workers of this run."""
        for name in self.members:
            with reached():
                # a mark that expired may be another run's by now
                if self._client.get(redis_keys.busy(name)) == self._run.encode():
                    self._client.delete(redis_keys.busy(name))

    def _read(self, data: bytes | None) -> Heartbeat | None:
        if data is None:
            return None
        try:
            return Heartbeat.parse(self._sealer.open(Heartbeat.KIND, data))
        except Untrusted:
            self.refused += 1
            return None
