"""The agent of a worker process: heartbeats, control records, and the run it serves."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from osbench import __version__
from osbench.common.clock import ClockOffset, measure
from osbench.common.errors import OsbenchError, StoreAway
from osbench.common.protocol import broker, redis_keys
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client, reached, server_run_id
from osbench.common.protocol.store import RedisStore
from osbench.worker.session.preparation import Preparation
from osbench.worker.session.session import Session

LOG = logging.getLogger(__name__)

BEAT_S = 0.5
#: How often this process is added to the set of workers.
LIST_S = 2.0
#: How often the control record is read while a workload is about to start.
EAGER_S = 0.05
#: How often the clock's offset is measured again.
OFFSET_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Identity of this worker process; new at every start."""

    incarnation: str
    host: str
    pid: int
    label: str
    capacity: int


class Agent:
    """Sends heartbeats and serves runs in its own thread until it has drained."""

    def __init__(
        self,
        *,
        identity: Identity,
        connect: Callable[[], Client],
        sealer: Sealer,
        vault: Vault,
        preparation: Preparation,
        spool_dir: Path,
        spool_limit_bytes: int,
        max_stuck: int,
    ) -> None:
        self._identity = identity
        self._connect = connect
        self._client = connect()
        self._sealer = sealer
        self._vault = vault
        self._preparation = preparation
        self._spool = spool_dir / f"{identity.incarnation}.blocks"
        self._spool_limit = spool_limit_bytes
        self._max_stuck = max_stuck
        self._beat = 0
        self._refused = 0
        self._server_run_id = ""
        self._offset: ClockOffset | None = None
        self._offset_at = 0.0
        self._cpu = (time.monotonic(), time.process_time())
        self._last_beat = 0.0
        self._listed = float("-inf")
        self._reported = ""
        #: The run served last, which may still hold this worker in Redis.
        self._last_run = ""
        self._session: Session | None = None
        self._store: RedisStore | None = None
        self._draining = threading.Event()
        self.done = threading.Event()

    def start(self) -> None:
        """Register and start the thread. Raises StoreAway, StoreError at first contact."""
        self._synchronize()
        self._send_beat()
        threading.Thread(target=self._loop, name="agent", daemon=True).start()

    def receive(self, data: bytes) -> None:
        """Take a batch from the broker."""
        session = self._session
        refusal = session.offer(data) if session is not None else "no run is served"
        if refusal:
            self._refused += 1
            LOG.warning("a batch was refused: %s", refusal)

    def drain(self) -> None:
        """Take no more work; `done` is set when all results are acknowledged."""
        self._draining.set()

    def deregister(self) -> None:
        """Remove the Redis keys of this process, Celery's included."""
        with reached():
            broker.forget(self._client, self._identity.incarnation)

    def _synchronize(self) -> None:
        """After every (re)connection: read the server's run id and measure the clock offset."""
        self._server_run_id = server_run_id(self._client)
        self._offset = measure(self._client)
        self._offset_at = time.monotonic()
        if self._session is not None:
            self._session.claimer.server_run_id = self._server_run_id

    def _loop(self) -> None:
        away = False
        while not self.done.is_set():
            try:
                if away or time.monotonic() - self._offset_at > OFFSET_S:
                    self._synchronize()
                    away = False
                self._turn()
            except StoreAway as error:
                if not away:
                    LOG.warning("%s; continuing with claimed iterations", error)
                away = True
            except OsbenchError as error:
                LOG.error("%s", error)
            if self._draining.is_set():
                time.sleep(self._pause_s())
            else:
                self._draining.wait(self._pause_s())

    def _pause_s(self) -> float:
        session = self._session
        if session is not None and (session.eager or self._draining.is_set()):
            return EAGER_S
        return min(BEAT_S, max(0.01, self._last_beat + BEAT_S - time.monotonic()))

    def _turn(self) -> None:
        session = self._session
        if session is None:
            self._look_for_run()
        else:
            self._serve(session)
        if self._draining.is_set() and (session is None or session.drained):
            self._leave_run()
            self.done.set()
        news = self._news()
        if news != self._reported or time.monotonic() - self._last_beat >= BEAT_S * 0.98:
            self._reported = news
            self._send_beat()

    def _look_for_run(self) -> None:
        with reached():
            run = cast(bytes | None, self._client.get(redis_keys.busy(self._identity.incarnation)))
        if run is None or self._draining.is_set():
            return
        run_id = run.decode()
        if run_id == self._last_run:
            return
        store = RedisStore(self._connect(), run_id)
        head = store.head()
        epoch = head.get("epoch")
        if epoch is None:
            return  # the coordinator holds this worker and has not opened its run yet
        if head.get("boot") != self._server_run_id:
            # the server restarted while this worker was idle, and redis-py reconnected silently
            self._synchronize()
        self._store = store
        self._session = Session(
            run=run_id,
            epoch=epoch,
            incarnation=self._identity.incarnation,
            capacity=self._identity.capacity,
            store=store,
            sealer=self._sealer,
            vault=self._vault,
            preparation=self._preparation,
            spool=self._spool,
            spool_limit_bytes=self._spool_limit,
        )
        self._session.claimer.server_run_id = self._server_run_id
        LOG.info("serving run %s", run_id)

    def _serve(self, session: Session) -> None:
        assert self._offset is not None
        assert self._store is not None
        record, holder = self._store.control_and_holder(self._identity.incarnation)
        refusal = session.follow(record, self._offset)
        if refusal:
            self._refused += 1
            LOG.warning("a control record was refused: %s", refusal)
        if session.over:
            self._leave_run()
            return
        if holder != session.run:
            # the coordinator did not renew its hold: finish claimed iterations, then be free
            session.drain()
            if session.empty:
                self._leave_run()
        elif (self._draining.is_set() or session.stuck >= self._max_stuck) and (
            not session.draining
        ):
            session.drain()

    def _leave_run(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._last_run = session.run
            session.close()
            LOG.info("left run %s", session.run)

    def _news(self) -> str:
        """State whose changes are sent at once, because the coordinator waits for them."""
        session = self._session
        if session is None:
            return ""
        settled = session.busy == 0 or session.generation
        return f"{session.run} {session.state} {session.prepared} {session.generation} {settled}"

    def _state(self) -> str:
        session = self._session
        if session is not None and session.stuck >= self._max_stuck:
            return "stuck"
        if self._draining.is_set():
            return "draining"
        return session.state if session is not None else "idle"

    def _send_beat(self) -> None:
        offset, session = self._offset, self._session
        assert offset is not None
        now, used = time.monotonic(), time.process_time()
        elapsed = max(now - self._cpu[0], 1e-6)
        cpu = (used - self._cpu[1]) / elapsed
        self._cpu = (now, used)
        self._beat += 1
        self._last_beat = now
        beat = Heartbeat(
            incarnation=self._identity.incarnation,
            beat=self._beat,
            host=self._identity.host,
            pid=self._identity.pid,
            label=self._identity.label,
            version=__version__,
            capacity=self._identity.capacity,
            state=self._state(),
            run=session.run if session is not None else "",
            prepared=session.prepared if session is not None else -1,
            problem=session.problem if session is not None else "",
            generation=session.generation if session is not None else 0,
            busy=session.busy if session is not None else 0,
            queued=session.queued if session is not None else 0,
            cpu=round(cpu, 3),
            offset_s=offset.wall_s,
            uncertainty_s=offset.uncertainty_ns / 1e9,
            stuck=session.stuck if session is not None else 0,
            refused=self._refused,
            spans=self._preparation.span_counts(),
        )
        sealed = self._sealer.seal(Heartbeat.KIND, beat.body())
        with reached():
            pipe = self._client.pipeline(transaction=False)
            pipe.set(
                redis_keys.worker(self._identity.incarnation), sealed, ex=redis_keys.WORKER_TTL_S
            )
            # repeated, because Redis may have lost it or a coordinator may have removed it
            if now - self._listed >= LIST_S:
                pipe.sadd(redis_keys.WORKERS, self._identity.incarnation)
            pipe.execute()
        if now - self._listed >= LIST_S:
            self._listed = now
