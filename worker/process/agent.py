"""The agent of a worker process: joins one run at a time and follows its coordinator.

It joins by a coordinator's offer, and follows control records; both are read from Redis.
"""

from __future__ import annotations

import logging
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass

from osbench import __version__
from osbench.common.errors import OsbenchError, StoreUnreachable, Untrusted
from osbench.common.machine.clock_steps import ClockSteps
from osbench.common.machine.python_build import is_unoptimised
from osbench.common.machine.redis_clock import ClockOffset, measure
from osbench.common.ports import chance as secrets
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.protocol import redis_keys
from osbench.common.protocol.messages import Batch, Heartbeat, Offer
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.store import Store
from osbench.common.protocol.wire import Wire
from osbench.worker.engine.engine import HeldLoop, Remains
from osbench.worker.process.beat_sender import BeatSender
from osbench.worker.process.host_load import HostLoad
from osbench.worker.session.beat_log import BeatLog
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.left_memberships import LeftMemberships
from osbench.worker.session.offer_rules import is_repeated, offer_refusal
from osbench.worker.session.refusals import BAD_SIGNATURE, NO_RUN
from osbench.worker.session.session import Session

LOG = logging.getLogger(__name__)

#: How often offers and control records are read, and while a workload is about to start or the
#: process is new, seconds.
READ_S = 0.25
EAGER_S = 0.05
#: The same in local mode, whose Redis has no other clients.
LOCAL_EAGER_S = 0.005
#: A process is new for so long: in local mode a run waits for it.
NEW_S = 5.0
#: How often the clock's offset is measured again, and how long that may keep a run waiting,
#: seconds. Before a workload it takes as long as it takes.
OFFSET_S = 30.0
OFFSET_WITHIN_S = 0.3
#: How often offers are read by one that is in a run: only the next coordinator makes one.
OFFER_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Names of this worker process in heartbeats; the incarnation is new at every start.

    `label` is `[worker] label`.
    """

    incarnation: str
    host: str
    pid: int
    label: str


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Limits: for a reply of Redis, for a coordinator's silence, and for stuck iterations."""

    #: Bound of a reply of Redis, and of a coordinator's silence, seconds.
    redis_timeout_s: float
    coordinator_lost_s: float
    #: Stuck threads at which no more work is taken.
    max_stuck: int


class Agent:
    """Serves runs, one at a time, in its own thread, until it is drained: see `drain`.

    Heartbeats have another thread.
    """

    def __init__(
        self,
        *,
        identity: Identity,
        connect: Callable[[float], Client],
        equipment: Equipment,
        patience: Patience,
        eager_s: float = EAGER_S,
    ) -> None:
        """Create the agent; `connect` returns a Redis client with a limit, seconds, for each reply.

        `eager_s`: seconds between two reads of records in Redis while they may change at any time.
        """
        self._identity = identity
        self._patience = patience
        self._eager_s = eager_s
        self._client = connect(patience.redis_timeout_s)
        self._equipment = equipment
        self._refusals = equipment.refusals
        self._offset: ClockOffset | None = None
        self._offset_at = 0.0
        #: When records of coordinators were last read, monotonic.
        self._read_ns = time.monotonic_ns()
        self._new_until = time.monotonic() + NEW_S
        self._cpu = (time.monotonic(), time.process_time())
        self._host_load = HostLoad()
        self._host_load.measure(self._cpu[0])
        self._clock_steps = ClockSteps()
        self._log = BeatLog()
        self._beats = BeatSender(
            incarnation=identity.incarnation,
            connect=connect,
            signer=equipment.signer,
            log=self._log,
            describe=self._describe,
        )
        #: The session and the challenge, which change together; assigned by one thread only.
        self._place: tuple[Session | None, str] = (None, secrets.token_hex(16))
        self._left = LeftMemberships(equipment)
        #: The membership whose numbers stand on the page that the supervisor reads.
        self._paged = ""
        #: What is stuck of sessions that have ended.
        self._stuck: list[Remains] = []
        self._offer = b""
        self._offer_at = 0.0
        self._reported: object = None
        self._away = False
        #: Too much is stuck to go on; the loop alone decides, and follows its own report at once.
        self._jammed = False
        #: When the loop last went round, monotonic.
        self._turned = time.monotonic()
        self._draining = threading.Event()
        self.done = threading.Event()

    @property
    def _session(self) -> Session | None:
        return self._place[0]

    def start(self) -> None:
        """Measure the offset of Redis's clock, send the first heartbeat and start both threads.

        Raises StoreUnreachable, StoreError at the first contact with Redis.
        """
        self._synchronize()
        self._beats.start()
        threading.Thread(target=self._loop, name="agent", daemon=True).start()

    def receive(self, data: object) -> None:
        """Verify a batch from the broker and pass it to the session; count and log a refusal.

        Refused are data that is not a batch or has a bad signature, batches without a run, and
        batches that the session refuses. Called by Celery's thread.
        """
        try:
            if not isinstance(data, bytes):
                raise Untrusted("a batch that is not bytes")
            batch = Batch.parse(self._equipment.signer.verify(Batch.KIND, data))
        except Untrusted:
            refusal = BAD_SIGNATURE
        else:
            session = self._session
            refusal = session.offer(batch) if session is not None else NO_RUN
        if refusal:
            self._refusals.count(refusal, "a batch")

    def drain(self) -> None:
        """Leave the run and take no more work; returns at once.

        `done` is set later: when all results are acknowledged, or no acknowledgement is expected
        any more.
        """
        self._draining.set()

    def progress(self) -> tuple[str, float]:
        """Return the state, and when the loop last began a round, monotonic seconds."""
        return self._state(), self._turned

    def deregister(self) -> None:
        """Stop heartbeats and remove the Redis keys of this process, Celery's queue included.

        Result blocks that are not acknowledged are dropped, with a warning. Raises
        StoreUnreachable, StoreError.
        """
        self._beats.close()
        self._left.close()
        Wire(self._client).forget(self._identity.incarnation)
        self._client.close()

    def _synchronize(self, within_s: float = math.inf) -> None:
        self._offset = measure(self._client, within_s=within_s)
        self._offset_at = time.monotonic()

    def _loop(self) -> None:
        while not self.done.is_set():
            self._turned = time.monotonic()
            try:
                self._hear()
                self._jammed = self._is_stuck()
                self._advance()
            except Exception:
                LOG.exception("internal error in the agent; it continues")
            pause_s = self._pause_s()
            if self._draining.is_set():
                time.sleep(pause_s)
            else:
                self._draining.wait(pause_s)

    def _pause_s(self) -> float:
        session = self._session
        if session is None:
            eager = time.monotonic() < self._new_until
        else:
            eager = session.workloads.eager or session.leaving
        return self._eager_s if eager or self._draining.is_set() else READ_S

    def _hear(self) -> None:
        """Read the records that coordinators write in Redis, and follow them; log errors of Redis.

        Reads control records, the offer, and the specification if one is wanted. Measures the
        clock's offset before if that is due, or if Redis was unreachable.
        """
        try:
            if self._away or time.monotonic() - self._offset_at > OFFSET_S:
                self._synchronize(OFFSET_WITHIN_S)
            self._read()
            self._away = False
        except StoreUnreachable as error:
            if not self._away:
                LOG.warning("%s; granted iterations continue while the lease lasts", error)
            self._away = True
        except OsbenchError as error:
            LOG.error("%s", error)

    def _read(self) -> None:
        session = self._session
        current = [] if session is None else [(session.run, session.membership)]
        members = [*current, *self._left.memberships()]
        keys = [redis_keys.control(run, membership) for run, membership in members]
        now = time.monotonic()
        awaited = session is None or now - self._offer_at >= OFFER_S
        if awaited:
            self._offer_at = now
            keys.append(redis_keys.offer(self._identity.incarnation))
        since_ns, read_ns = self._read_ns, time.monotonic_ns()
        records = Wire(self._client).records(keys)
        self._read_ns = read_ns
        offer = records.pop() if awaited else None
        if session is not None:
            record = records.pop(0)
            if session.workloads.awaits_start and session.is_news(record):
                # it may contain t0, and the clock of Redis may have been set since it was measured
                self._synchronize(OFFSET_WITHIN_S)
            assert self._offset is not None
            session.follow(record, self._offset, since_ns)
        for (run, membership), record in zip(members[len(current) :], records, strict=True):
            self._left.follow(run, membership, record)
        if offer is not None and offer != self._offer:
            # the same record is read many times
            self._offer = offer
            refusal = self._consider(offer)
            if refusal:
                self._refusals.count(refusal, "an offer")
        if self._session is not None:
            self._session.fetch()

    def _consider(self, data: bytes) -> str:
        """Verify and follow an offer of a new run or of the run's next coordinator process.

        Returns why it is refused, or "". An offer that is followed already, and a new run while
        draining or stuck, are ignored: returns "".
        """
        try:
            offer = Offer.parse(self._equipment.signer.verify(Offer.KIND, data))
        except Untrusted:
            return BAD_SIGNATURE
        session = self._session
        if is_repeated(offer, session):
            return ""
        refusal = offer_refusal(
            offer,
            incarnation=self._identity.incarnation,
            challenge=self._place[1],
            session=session,
        )
        if refusal:
            return refusal
        if session is None:
            self._join(offer)
            return ""
        session.takeover(offer)
        self._move(session)
        LOG.info("run %s has a new coordinator", session.run)
        return ""

    def _join(self, offer: Offer) -> None:
        if self._draining.is_set() or self._jammed:
            return
        page = self._equipment.page
        if page is not None:
            page.join(offer.run, offer.membership)
            self._paged = offer.membership
        session = Session(
            offer,
            equipment=self._equipment,
            store=Store(self._client, offer.run),
            beats=self._log,
            news=self._beats.wake,
        )
        self._move(session)
        LOG.info("serving run %s", offer.run)

    def _advance(self) -> None:
        """Leave the run if that is due, send waiting blocks, and request a heartbeat on news.

        Sets `done` once the process is drained. One round of the loop.
        """
        session = self._session
        if session is not None:
            self._serve(session)
        self._left.send()
        self._clear_page()
        if self._draining.is_set() and self._session is None and not self._left.expected():
            self.done.set()
        news = self._news()
        if news != self._reported:
            self._reported = news
            self._beats.wake()

    def _serve(self, session: Session) -> None:
        if session.over:
            session.drop()
            self._retire(session)
            session.outbox.close()
            return
        lost_s = self._patience.coordinator_lost_s
        if not session.leaving:
            if session.unheard_s() > lost_s:
                LOG.warning("run %s: its coordinator was not heard for %g s", session.run, lost_s)
                session.leave()
            elif self._draining.is_set() or self._jammed:
                session.leave()
        # before anything of it is sent: nothing can begin this membership again
        if session.finish():
            self._retire(session)
            self._left.add(session)

    def _move(self, session: Session | None) -> None:
        """Switch to `session` (None: no run) and issue a new challenge for the next offer."""
        self._place = (session, secrets.token_hex(16))

    def _retire(self, session: Session) -> None:
        self._move(None)
        earlier = [one for one in self._stuck if one.is_alive()]
        self._stuck = [*earlier, *session.workloads.stuck()]
        session.close()
        LOG.info("left run %s", session.run)

    def _clear_page(self) -> None:
        page, session = self._equipment.page, self._session
        if page is None or not self._paged or session is not None:
            return
        # as long as blocks are not delivered, the page holds their news
        if all(membership != self._paged for _, membership in self._left.memberships()):
            page.leave()
            self._paged = ""

    def _stuck_count(self) -> int:
        earlier = sum(one.is_alive() for one in self._stuck)
        session = self._session
        return earlier + (len(session.workloads.stuck()) if session is not None else 0)

    def _is_stuck(self) -> bool:
        session = self._session
        current = session.workloads.stuck() if session is not None else []
        held = any(isinstance(one, HeldLoop) for one in current)
        held = held or any(isinstance(one, HeldLoop) and one.is_alive() for one in self._stuck)
        return held or self._stuck_count() >= self._patience.max_stuck

    def _news(self) -> object:
        """Return a value that changes if the coordinator needs a heartbeat at once.

        Made of challenge, state, prepared workload, generation of the user limit, and whether all
        is idle.
        """
        session, challenge = self._place
        if session is None:
            return challenge, self._state()
        workloads = session.workloads
        settled = workloads.busy == 0 or workloads.generation
        return challenge, self._state(), workloads.prepared, workloads.generation, settled

    def _state(self) -> str:
        session = self._session
        if self._jammed:
            return "stuck"
        if self._draining.is_set():
            return "draining"
        return session.state if session is not None else "idle"

    def _describe(self, number: int) -> Heartbeat:
        """Return heartbeat `number` with present figures; called by the thread of heartbeats.

        CPU and host load are averages since the last call.
        """
        session, challenge = self._place
        offset = self._offset
        assert offset is not None
        now, used = time.monotonic(), time.process_time()
        cpu = (used - self._cpu[1]) / max(now - self._cpu[0], 1e-6)
        self._cpu = (now, used)
        host = self._host_load.measure(now)
        steps = self._clock_steps
        steps.look()
        identity = self._identity
        return Heartbeat(
            incarnation=identity.incarnation,
            beat=number,
            host=identity.host,
            pid=identity.pid,
            label=identity.label,
            version=__version__,
            capacity=self._equipment.user_limits.threads,
            coroutines=self._equipment.user_limits.coroutines,
            state=self._state(),
            challenge=challenge,
            cpu=round(cpu, 3),
            waiting=round(host.waiting, 3),
            cores=self._host_load.cores,
            cores_used=round(host.cores_used, 3),
            quota=self._host_load.quota,
            throttled=round(host.throttled, 3),
            offset_s=offset.wall_s,
            uncertainty_s=offset.uncertainty_ns / 1e9,
            clock_set_s=[steps.back_s, steps.forward_s],
            stuck=self._stuck_count(),
            refusals=self._refusals.counts(),
            spans=self._equipment.preparation.span_counts(),
            python=platform.python_version(),
            unoptimised=is_unoptimised(),
            **(session.facts() if session is not None else {}),
        )
