"""Rules of a coordinator that can be left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from osbench.common.protocol import redis_keys
from osbench.common.protocol.messages import Block, Heartbeat
from osbench.common.values.intervals import Intervals
from osbench.coordinator.load.dispatch import batches
from osbench.coordinator.load.dispatch.batches import Batches
from osbench.coordinator.load.dispatch.dispatcher import Dispatcher
from osbench.coordinator.load.fleet import heartbeats, pool
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.load.fleet.pool import WorkerPool
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run import load_loop, release
from osbench.coordinator.load.run.failover import Failover
from osbench.coordinator.load.run.lifecycle import Run
from osbench.coordinator.load.run.load_clock import LoadClock
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.workload.user_allocation import UserAllocation
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.load.transport.channel import Channel
from osbench.coordinator.load.transport.controls import Controls
from osbench.coordinator.load.transport.receiver import Receiver
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.ledger import Ledger
from osbench.coordinator.results.accounting.workload_users import UserRegister
from world.mutants.mutant import Change, mutant, timers_with

# workers that join


@mutant("moved-number", "a user begins on another worker when its number is free")
def _moved_number() -> Sequence[Change]:
    return [(UserRegister, "spare", lambda self, planned: planned)]


@mutant("join-most", "no more workers join a run than it was to take")
def _join_most() -> Sequence[Change]:
    real = Failover.invite

    def invite(self: Failover, loads: Any) -> None:
        most, self.most_workers = self.most_workers, self.most_workers and 99
        real(self, loads)
        self.most_workers = most

    return [(Failover, "invite", invite)]


# grants


@mutant("consent", "silence moves nothing that was granted", faults=("cut-off", "pause"))
def _consent() -> Sequence[Change]:
    def again(one: Accounts, record: dict[str, Any]) -> None:
        member = one.memberships[record["mid"]]
        for ledger in one._ledgers:
            ledger.consent(member.name)

    return [(Accounts, "_again", again)]


@mutant(
    "idempotent-only",
    "what a lost worker holds is granted again only where the workload is idempotent",
    faults=("cut-off", "pause"),
)
def _idempotent_only() -> Sequence[Change]:
    def again(one: Accounts, record: dict[str, Any]) -> None:
        member = one.memberships[record["mid"]]
        for ledger in one._ledgers:
            ledger.offer_again(member.name)

    return [(Accounts, "_again", again)]


@mutant(
    "one-grant",
    "a number that a membership still has open is not granted to it again",
    faults=("pause", "cut-off", "hang", "replay"),
)
def _one_grant() -> Sequence[Change]:
    real = Ledger.allot
    return [(Ledger, "allot", lambda self, count, budget, member="": real(self, count, budget))]


@mutant(
    "ended",
    "nothing is granted to a membership that has a final block or a will on disk",
    faults=("drain", "pause-coordinator", "hang"),
)
def _ended() -> Sequence[Change]:
    real = WorkerHandle.takes_work

    def takes_work(one: WorkerHandle, now: float) -> bool:
        final, one.membership.final = one.membership.final, 0
        try:
            return real(one, now)
        finally:
            one.membership.final = final

    return [(WorkerHandle, "takes_work", takes_work)]


@mutant(
    "resend-batch",
    "batches that a heartbeat does not confirm are sent again",
    faults=("batches", "flush", "rollback", "delete"),
)
def _resend_batch() -> Sequence[Change]:
    return [
        (batches, "timers", timers_with(RESEND_S=1e9)),
        (batches, "UNDELIVERED_S", 1e9),
    ]


@mutant(
    "recall-unknown",
    "what an earlier coordinator granted and no worker has is asked back",
    faults=("kill-coordinator", "batches", "flush"),
)
def _recall_unknown() -> Sequence[Change]:
    return [(Batches, "_recall_unknown", lambda self, worker, delivery: None)]


@mutant(
    "budget",
    "no number beyond the plan is granted",
    faults=(),
)
def _budget() -> Sequence[Change]:
    real, allot = Ledger.available, Ledger.allot

    def available(one: Ledger, budget: int | None) -> int | None:
        return real(one, None if budget is None else budget + 1)

    def beyond(one: Ledger, count: int, budget: int | None, member: str = "") -> Intervals:
        return allot(one, count, None if budget is None else budget + 1, member)

    return [(Ledger, "available", available), (Ledger, "allot", beyond)]


# results


@mutant(
    "once",
    "a block counts once",
    faults=("reply", "replay", "rollback"),
    unseen="settled-once stands behind it: a number is settled once, whichever block tells it",
)
def _once() -> Sequence[Change]:
    return [
        (Membership, "has", lambda self, number: False),
        (Receiver, "_came_before", lambda self, block: False),
    ]


@mutant(
    "settled-once",
    "a number is settled once",
    faults=("pause", "cut-off"),
)
def _settled_once() -> Sequence[Change]:
    def report(one: Ledger, member: str, numbers: Any, outcomes: Any) -> Any:
        one._settled.update(Intervals.of(numbers))
        for code, count in enumerate(np.bincount(outcomes).tolist()):
            one._counts[code] += count
        held = one._held.get(member)
        if held is not None:
            held.take(Intervals.of(numbers))
        return np.ones(len(numbers), np.bool_)

    return [(Ledger, "report", report)]


@mutant(
    "whole",
    "a final block counts when all blocks before it are on disk",
    faults=("drain", "reply", "rollback", "flush", "delete", "replay"),
)
def _whole() -> Sequence[Change]:
    return [(Membership, "whole", property(lambda self: self.final > 0))]


@mutant(
    "ack-gap",
    "the acknowledgement ends before the first missing block",
    faults=("rollback", "flush", "delete", "reply"),
)
def _ack_gap() -> Sequence[Change]:
    real = Membership.note

    def note(one: Membership, number: int) -> None:
        real(one, number)
        one.acknowledged = max(one.acknowledged, number)

    return [(Membership, "note", note)]


@mutant(
    "unknown-member",
    "a block of an unknown membership makes that membership known",
    faults=("kill-coordinator",),
)
def _unknown_member() -> Sequence[Change]:
    real = Receiver._fits

    def fits(one: Receiver, block: Block) -> bool:
        return real(one, block) and block.membership in one._accounts.memberships

    return [(Receiver, "_fits", fits)]


@mutant(
    "own-run",
    "a block of another worker than its membership's is refused",
    faults=("replay",),
    unseen="nobody in a world forges what is signed",
)
def _own_run() -> Sequence[Change]:
    return [(Receiver, "_fits", lambda self, block: block.run == self._channel.run_id)]


@mutant("will", "a will gives back what its process cannot have started", faults=("kill",))
def _will() -> Sequence[Change]:
    return [(Accounts, "execution", lambda self, will: [])]


@mutant(
    "will-position",
    "a will gives back what lies behind the position that it names",
    faults=("kill",),
)
def _will_position() -> Sequence[Change]:
    real = Ledger.behind

    def behind(one: Ledger, member: str, seq: int, number: int) -> Intervals:
        return real(one, member, seq, max(0, number - 8))

    return [(Ledger, "behind", behind)]


# ends


@mutant(
    "holders",
    "a number that somebody may hold is lost, not not_started",
    faults=("kill", "interrupt"),
)
def _holders() -> Sequence[Change]:
    real = Ledger.close

    def close(one: Ledger, budget: int | None) -> None:
        if not one._closed:
            for held in one._held.values():
                held.open.subtract(one._settled.intersection(held.open))
                one.pool.update(held.open)
                held.open = Intervals()
        real(one, budget)

    return [(Ledger, "close", close)]


@mutant(
    "watched",
    "only time in which the coordinator was awake and Redis answered ends a wait",
    faults=("pause-coordinator", "hang"),
)
def _watched() -> Sequence[Change]:
    return [(pool, "LONGEST_POLL_S", 1e9)]


@mutant(
    "restate",
    "controls and specifications are written again",
    faults=("flush", "delete", "restart", "wrong-type"),
)
def _restate() -> Sequence[Change]:
    return [
        (load_loop, "RESTATE_S", 1e9),
        (Controls, "restate", lambda self, workers: None),
    ]


@mutant(
    "lost-unanswered",
    "a worker that counts as lost gets no answers, so that its lease ends",
    faults=("cut-off", "hang"),
    unseen="what would be answered is a heartbeat from before the silence",
)
def _lost_unanswered() -> Sequence[Change]:
    real = Controls.answer

    def answer(one: Controls, workers: Iterable[WorkerHandle], *args: Any, **named: Any) -> None:
        found = list(workers)
        for worker in found:
            _ANSWERED[worker.mid] = worker
        lost = [worker for worker in _ANSWERED.values() if worker not in found and worker.session]
        real(one, [*found, *lost], *args, **named)

    return [(Controls, "answer", answer)]


_ANSWERED: dict[str, WorkerHandle] = {}


@mutant(
    "lost-after",
    "a worker is lost only after its lease is over",
    faults=("cut-off", "hang"),
)
def _lost_after() -> Sequence[Change]:
    real = Failover.__init__

    def begin(one: Failover, services: RunServices) -> None:
        real(one, services)
        object.__setattr__(services.limits, "lost_after_s", 1.0)

    return [(Failover, "__init__", begin)]


@mutant(
    "superseded",
    "a coordinator ends when a worker follows a later one",
    faults=("kill-coordinator", "second-coordinator"),
    unseen="the lock lets no two coordinators of a world write",
)
def _superseded() -> Sequence[Change]:
    real = WorkerPool._follow

    def follow(one: WorkerPool, beat: Heartbeat, now: float) -> None:
        one.epoch = max(one.epoch, beat.epoch)
        real(one, beat, now)

    return [(WorkerPool, "_follow", follow)]


@mutant(
    "takeover",
    "a resumed coordinator asks its members into new sessions",
    faults=("kill-coordinator",),
)
def _takeover() -> Sequence[Change]:
    return [(WorkerPool, "_take_over", lambda self, beat: None)]


@mutant("told-end", "workers are told that the run is over", faults=("cut-off", "pause"))
def _told_end() -> Sequence[Change]:
    return [(release, "_tell_end", lambda services, invited: None)]


@mutant(
    "told-while-away",
    "what tells a worker of the end stays until it has left",
    faults=("sleep-an-hour",),
)
def _told_while_away() -> Sequence[Change]:
    real = Channel.close

    def close(one: Channel, offered: Iterable[str], left: Iterable[str]) -> None:
        real(one, offered, _ANSWERED_BY.get(one, left))

    def control(one: Channel, records: Any) -> None:
        known = set(_ANSWERED_BY.get(one, ()))
        _ANSWERED_BY[one] = sorted(known | set(records))
        written(one, records)

    written = Channel.control
    return [
        (Channel, "close", close),
        (Channel, "control", control),
        (redis_keys, "OVER_TTL_S", 60),
    ]


_ANSWERED_BY: dict[Channel, list[str]] = {}


@mutant(
    "silence",
    "silence grows with polls that Redis answered",
    faults=("hang", "restart"),
)
def _silence() -> Sequence[Change]:
    real = WorkerHandle.hear

    def hear(one: WorkerHandle, beat: Heartbeat | None, since_s: float, now: float) -> bool:
        found = real(one, beat, since_s, now)
        one.silence_s = now - one.alive_at
        return found

    return [(WorkerHandle, "hear", hear)]


@mutant(
    "heard-again",
    "a worker that was lost and is heard again goes on",
    faults=("cut-off", "hang"),
    unseen="what it reports counts all the same, and others have its users",
)
def _heard_again() -> Sequence[Change]:
    return [(WorkerHandle, "found", lambda self: None)]


@mutant(
    "fresh",
    "work is given to workers that were heard a short time ago",
    faults=("cut-off", "pause"),
    unseen="it bounds how much is lost, not whether",
)
def _fresh() -> Sequence[Change]:
    from osbench.coordinator.load.fleet import worker

    return [(worker, "timers", timers_with(FRESH_S=1e9))]


# what the first worlds found


@mutant(
    "first-record",
    "a worker that is taken over is told what it goes on with by its first record",
    faults=("kill-coordinator", "cut-off", "hang"),
    unseen="told-again stands behind it: the worker prepares its workload once more",
)
def _first_record() -> Sequence[Change]:
    real = Controls.answer
    return [
        (Controls, "answer", lambda self, workers, taking_over=(): real(self, workers, ())),
    ]


@mutant(
    "user-limit-kept",
    "a worker that is taken over holds the users that it has",
    behind=("unheard-held", "moved-number"),
)
def _user_limit_kept() -> Sequence[Change]:
    real = WorkerHandle.go_on

    def go_on(one: WorkerHandle, workload: int, *, coroutines: bool = False) -> bool:
        found = real(one, workload, coroutines=coroutines)
        one.user_limit = one.held = 0
        return found

    return [(WorkerHandle, "go_on", go_on)]


@mutant(
    "unheard-held",
    "a worker that does not follow yet may have the users that it had",
)
def _unheard_held() -> Sequence[Change]:
    return [(UserAllocation, "_unheard", lambda self: 0)]


@mutant(
    "told-again",
    "a record with users names the specification, for a worker that has dropped the workload",
    faults=("kill-coordinator", "cut-off", "hang"),
)
def _told_again() -> Sequence[Change]:
    real = Controls.write

    def write(one: Controls, changes: Mapping[WorkerHandle, Mapping[str, Any]]) -> None:
        shares = [fields for fields in changes.values() if "numbers" in fields]
        named = {id(fields): {**fields} for fields in shares}
        for fields in named.values():
            del fields["specification"]
        real(one, {worker: named.get(id(fields), fields) for worker, fields in changes.items()})

    return [(Controls, "write", write)]


@mutant(
    "anchored-start",
    "the start of a load does not move with the clock of Redis",
    faults=("kill-coordinator", "redis-clock"),
)
def _anchored_start() -> Sequence[Change]:
    def restore(one: LoadClock, workload: int, t0_at: float) -> None:
        one.begin(workload, t0_at)

    return [(LoadClock, "restore", restore)]


@mutant(
    "resumed-report",
    "a resumed run that is stopped stays resumable until it has its report",
    faults=("kill-coordinator", "interrupt", "hang"),
)
def _resumed_report() -> Sequence[Change]:
    return [(Run, "_stays_resumable", lambda self, error: self._waits(error))]


@mutant(
    "recall-unused",
    "what a worker holds whose users have moved to others is asked back",
    faults=("pause", "cut-off"),
)
def _recall_unused() -> Sequence[Change]:
    return [(Dispatcher, "recall_unused", lambda self, workers: None)]


@mutant(
    "changing-heartbeat",
    "a heartbeat that stays the same is no sign of life",
    faults=("kill", "redis-clock"),
)
def _changing_heartbeat() -> Sequence[Change]:
    return [
        (heartbeats, "redis_keys", SimpleNamespace(**{**vars(redis_keys), "WORKER_TTL_S": 1e9}))
    ]


@mutant(
    "missing-blocks",
    "blocks that were acknowledged and are not on disk are not waited for",
    faults=("damage",),
)
def _missing_blocks() -> Sequence[Change]:
    return [(Membership, "missing", lambda self, delivered: [])]


@mutant(
    "older-copy",
    "a journal that knows less than its workers is not gone on with",
    faults=("restore-backup",),
    unseen="judges leave a run with two histories alone; a unit test shows it",
)
def _older_copy() -> Sequence[Change]:
    real = WorkerPool._follow

    def follow(one: WorkerPool, beat: Heartbeat, now: float) -> None:
        real(one, replace(beat, got=0) if beat.epoch < one.epoch else beat, now)

    return [(WorkerPool, "_follow", follow)]


@mutant(
    "last-look",
    "what stands in the results when a wait ends is read before the load is closed",
    faults=("hang", "pause-coordinator", "drain", "interrupt"),
    unseen="a read takes 32 blocks, and what a world sends is read within the time for settling",
)
def _last_look() -> Sequence[Change]:
    real = Channel.read

    def read(one: Channel, wait_s: float) -> Any:
        found = real(one, wait_s)
        one.behind = False
        return found

    return [(Channel, "read", read)]


@mutant(
    "recall-strays",
    "what a worker holds of a load that it serves no more is asked back",
    faults=("pause", "interrupt", "delete", "reply", "shuffle", "block", "disk", "redis-full"),
    unseen="a worker that leaves a load gives it back by itself; one schedule in 500,000 showed it",
)
def _recall_strays() -> Sequence[Change]:
    return [(WorkloadRun, "_strays", lambda self: [])]
