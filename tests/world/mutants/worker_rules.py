"""Rules of a worker that can be left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from osbench.common.machine.redis_clock import ClockOffset
from osbench.common.protocol import timers
from osbench.common.protocol.messages import Batch, Control, Offer
from osbench.common.values.intervals import Interval
from osbench.worker.engine import engine as engine_module
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import agent
from osbench.worker.process.agent import Agent
from osbench.worker.session import intake, session, workloads
from osbench.worker.session.intake import Intake, Recalled
from osbench.worker.session.left_memberships import LeftMemberships
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.refusals import OLD_CHALLENGE, OTHER_SESSION
from osbench.worker.session.session import Session
from osbench.worker.session.shipper import Shipper
from osbench.worker.session.workloads import Workloads
from world import ports
from world.mutants.mutant import Change, mutant, timers_with

#: Redis goes back to what it was, while workers come and go.
OLD_MESSAGES = ("replay", "rollback", "kill-coordinator", "pause", "drain", "shuffle")


def _tolerant(*reasons: str) -> Callable[..., str]:
    """`offer_refusal` without some of its reasons."""
    real = agent.offer_refusal

    def refusal(offer: Offer, **known: Any) -> str:
        found = real(offer, **known)
        return "" if found in reasons else found

    return refusal


@mutant("moved-ends", "a user whose number moves to another worker ends, and is told until it has")
def _moved_ends() -> Sequence[Change]:
    real = engine_module.Engine.set_user_limit

    def set_user_limit(
        self: engine_module.Engine, user_limit: int, numbers: Sequence[Interval] = ()
    ) -> None:
        real(self, user_limit, numbers)
        self.places = engine_module.NEVER

    return [(engine_module.Engine, "set_user_limit", set_user_limit)]


@mutant(
    "challenge",
    "an offer answers the present challenge of the worker, which is used once",
    faults=OLD_MESSAGES,
)
def _challenge() -> Sequence[Change]:
    return [(agent, "offer_refusal", _tolerant(OLD_CHALLENGE))]


@mutant(
    "session",
    "a batch names the present session of the worker",
    faults=("kill-coordinator", "batches", "shuffle"),
    behind=("recalled-refused", "taken-once"),
)
def _session() -> Sequence[Change]:
    real = Intake._refusal

    def refusal(one: Intake, batch: Batch) -> str:
        found = real(one, batch)
        return "" if found == OTHER_SESSION else found

    return [(Intake, "_refusal", refusal)]


@mutant(
    "sequence",
    "the batches of a membership are taken once and in order",
    faults=("batches", "shuffle", "kill"),
)
def _sequence() -> Sequence[Change]:
    def offer(one: Intake, batch: Batch) -> tuple[list[Batch], str]:
        refusal = one._refusal(batch)
        if refusal:
            return [], refusal
        one.got = max(one.got, batch.seq)
        return [batch], ""

    return [(Intake, "offer", offer)]


@mutant(
    "taken-once",
    "a batch that was taken, or is void, is not taken again",
    faults=("batches", "shuffle"),
)
def _taken_once() -> Sequence[Change]:
    real = Intake.offer

    def offer(one: Intake, batch: Batch) -> tuple[list[Batch], str]:
        refusal = one._refusal(batch)
        if not refusal and batch.seq <= one.got and batch.seq not in one._recalled:
            return [batch], ""
        return real(one, batch)

    return [(Intake, "offer", offer)]


@mutant("recall", "what is recalled is given back", faults=("kill-coordinator", "batches", "pause"))
def _recall() -> Sequence[Change]:
    return [(Intake, "recall", lambda self, seqs: Recalled())]


@mutant(
    "void",
    "a batch that was recalled and had not come is told to be void",
    faults=("kill-coordinator", "batches"),
)
def _void() -> Sequence[Change]:
    return [(Shipper, "reject", lambda self, seqs: None)]


@mutant(
    "recalled-refused",
    "a batch that was void is never taken",
    faults=("kill-coordinator", "batches", "shuffle"),
    behind=("session", "taken-once"),
)
def _recalled_refused() -> Sequence[Change]:
    real = Intake.recall

    def recall(one: Intake, seqs: Iterable[int]) -> Recalled:
        recalled = list(seqs)
        found = real(one, recalled)
        one._recalled.difference_update(recalled)
        return found

    return [(Intake, "recall", recall)]


@mutant(
    "early",
    "batches of a session that wait for earlier ones are forgotten with it",
    faults=("batches", "kill-coordinator"),
    unseen="they are taken in order all the same, and the journal knows them",
)
def _early() -> Sequence[Change]:
    def rebind(one: Intake, session_: str) -> None:
        one._session = session_

    return [(Intake, "rebind", rebind)]


@mutant(
    "pop-first",
    "what a user has taken out of the stock is started and never given back",
    faults=("drain", "kill-coordinator", "interrupt"),
)
def _pop_first() -> Sequence[Change]:
    real = Workloads.return_rest

    def return_rest(one: Workloads) -> None:
        for engine in one._engines():
            running = [number for number in engine.inflight if number > 0]
            engine.give_back([(number, number + 1) for number in running[:1]])
        real(one)

    return [(Workloads, "return_rest", return_rest)]


@mutant(
    "final",
    "a worker has left before it sends its final block",
    faults=("drain", "pause-coordinator", "hang", "cut-off"),
)
def _final() -> Sequence[Change]:
    real = Session.finish

    def finish(one: Session) -> bool:
        if one.leaving and not one._ended and not one.workloads.queued:
            # while iterations run, and batches are still taken
            one.shipper.finish()
        return real(one)

    return [(Session, "finish", finish)]


@mutant(
    "leave-returns",
    "a worker that leaves gives back what is not started",
    faults=("drain",),
)
def _leave_returns() -> Sequence[Change]:
    def return_rest(one: Workloads) -> None:
        for engine in one._engines():
            engine.take_back()
            engine.added = engine.shipped + len(engine.inflight)

    return [(Workloads, "return_rest", return_rest)]


@mutant(
    "version",
    "a control record that is older than the last one is not followed",
    faults=("replay", "rollback"),
)
def _version() -> Sequence[Change]:
    real = Session._follow

    def follow(one: Session, control: Control, offset: ClockOffset) -> str:
        one._version = -1
        return real(one, control, offset)

    return [(Session, "_follow", follow)]


@mutant(
    "specification",
    "a specification has the digest that the control record names",
    faults=("replay", "rollback"),
    unseen="a specification names its run and workload, and those of a world never change",
)
def _specification() -> Sequence[Change]:
    class Any_(bytes):
        __hash__ = bytes.__hash__

        def __ne__(self, other: object) -> bool:
            return False

    def sha256(data: bytes) -> SimpleNamespace:
        return SimpleNamespace(digest=lambda: Any_(hashlib.sha256(data).digest()))

    return [(workloads, "hashlib", SimpleNamespace(sha256=sha256))]


@mutant(
    "lease",
    "an iteration is started only within the lease",
    faults=("cut-off", "hang"),
)
def _lease() -> Sequence[Change]:
    return [(session, "timers", timers_with(LEASE_S=1e9))]


@mutant(
    "lease-length",
    "the lease is over before the silence that makes a worker lost",
    faults=("cut-off",),
)
def _lease_length() -> Sequence[Change]:
    return [(session, "timers", timers_with(LEASE_S=timers.LEASE_S + 2.0))]


@mutant(
    "lease-sent",
    "the lease counts from when the answered heartbeat was sent",
    faults=("cut-off", "hang", "pause-coordinator", "replay"),
)
def _lease_sent() -> Sequence[Change]:
    def renew(one: Session, beat: int) -> None:
        if one._beats.sent_ns(beat) is not None:
            one._lease_ns = ports.monotonic_ns() + int(timers.LEASE_S * 1e9)
            with one._lock:
                one.workloads.set_lease(one._lease_ns)

    return [(Session, "_renew", renew)]


@mutant(
    "lease-member",
    "a lease is renewed by answers of the run's coordinator to this membership only",
    faults=("kill-coordinator", "cut-off"),
    unseen="what answers a heartbeat names its session",
)
def _lease_member() -> Sequence[Change]:
    real = Session._follow

    def follow(one: Session, control: Control, offset: ClockOffset) -> str:
        if control.session != one.session:
            one._renew(control.answers)
        return real(one, control, offset)

    return [(Session, "_follow", follow)]


@mutant(
    "page-first",
    "what a supervisor can read names a number before it is started",
    faults=("kill",),
)
def _page_first() -> Sequence[Change]:
    return [
        (WillPage, "reach", lambda self, seq, number: None),
        (WillPage, "take", lambda self, due_ns, seq: None),
    ]


@mutant(
    "page-kept",
    "a will is left for a membership whose last blocks are not delivered",
    faults=("kill", "drain", "hang"),
    unseen="without a will the numbers are lost, which a kill excuses",
)
def _page_kept() -> Sequence[Change]:
    def clear(one: Agent) -> None:
        page = one._equipment.page
        if page is not None and one._session is None:
            page.leave()

    return [(Agent, "_clear_page", clear)]


@mutant(
    "resend-block",
    "blocks that are not acknowledged are sent again",
    faults=("reply", "rollback", "flush", "delete", "restart"),
)
def _resend_block() -> Sequence[Change]:
    real = Outbox.send

    def send(one: Outbox, store: Any, most_s: float) -> None:
        real(one, store, most_s)
        for kept in one._kept.values():
            kept.due = 1e18

    return [(Outbox, "send", send), (Outbox, "rush", lambda self: None)]


@mutant(
    "kept-until-acknowledged",
    "a block is kept until it is acknowledged",
    faults=("rollback", "flush", "restart", "kill-coordinator"),
)
def _kept_until_acknowledged() -> Sequence[Change]:
    real = Outbox.send

    def send(one: Outbox, store: Any, most_s: float) -> None:
        real(one, store, most_s)
        one.acknowledge(one.number() - 1)

    return [(Outbox, "send", send)]


@mutant(
    "acknowledged-alone",
    "an acknowledgement ends before the first missing block",
    faults=("rollback", "flush", "restart", "delete", "reply"),
)
def _acknowledged_alone() -> Sequence[Change]:
    real = Outbox.acknowledge

    def acknowledge(one: Outbox, number: int, have: Iterable[int] = ()) -> None:
        real(one, max(number, *have) if have else number)

    return [(Outbox, "acknowledge", acknowledge)]


@mutant(
    "left-sent",
    "what a worker has left is sent until it is acknowledged",
    faults=("pause-coordinator", "hang", "kill-coordinator"),
)
def _left_sent() -> Sequence[Change]:
    return [(LeftMemberships, "send", lambda self: None)]


@mutant(
    "over-followed",
    "a worker forgets what it had left of a run that is over",
    faults=("sleep-an-hour",),
)
def _over_followed() -> Sequence[Change]:
    real = Outbox.clear

    def clear(one: Outbox) -> None:
        if not one:
            real(one)

    return [(Outbox, "clear", clear)]


@mutant(
    "bounds",
    "a worker leaves a run whose coordinator is not heard for long",
    faults=("interrupt", "hang"),
)
def _bounds() -> Sequence[Change]:
    return [(Session, "unheard_s", lambda self: 0.0)]


@mutant(
    "settled-before-final",
    "the final block comes after every number is in a block",
    faults=("drain",),
)
def _settled_before_final() -> Sequence[Change]:
    return [(Workloads, "unsettled", property(lambda self: 0))]


@mutant(
    "reported-once",
    "an iteration that timed out is reported by the watchdog alone",
    faults=(),
    unseen="the thread of an iteration that timed out sleeps to its end in a world",
)
def _reported_once() -> Sequence[Change]:
    return [(engine_module, "GIVEN_UP", object())]


@mutant(
    "early-bound",
    "batches far ahead of the next one are refused, and sent again",
    faults=("batches",),
    unseen="it bounds memory and changes no account",
)
def _early_bound() -> Sequence[Change]:
    return [(intake, "EARLY_MOST", 1 << 30)]


@mutant(
    "fresh-clock",
    "t0 is taken by a measurement of Redis' clock that came with it",
    faults=("redis-clock",),
    behind=("told-delay",),
)
def _fresh_clock() -> Sequence[Change]:
    return [(Workloads, "awaits_start", property(lambda self: False))]


@mutant(
    "told-delay",
    "t0 is as far from now as from its telling where Redis' clock was set between the two",
    faults=("redis-clock",),
)
def _told_delay() -> Sequence[Change]:
    return [
        (ClockOffset, "told_ns", lambda self, at_s, told_at, since_ns: self.to_monotonic_ns(at_s))
    ]


@mutant(
    "surplus-told",
    "a user limit counts as lowered when no user beyond it runs an iteration",
    faults=("drain", "kill"),
)
def _surplus_told() -> Sequence[Change]:
    return [(Workloads, "surplus", property(lambda self: 0))]


@mutant(
    "stuck-once",
    "whether too much is stuck is decided once for each turn of the agent",
    faults=("pause", "hang"),
    unseen="iterations of a world end when their time is over, so that few are stuck at once",
)
def _stuck_once() -> Sequence[Change]:
    real = Agent._state

    def state(one: Agent) -> str:
        return "stuck" if one._is_stuck() else real(one)

    return [(Agent, "_state", state)]
