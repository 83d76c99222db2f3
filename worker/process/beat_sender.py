"""Sends heartbeats from a separate thread and connection, so that nothing delays them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from osbench.common.errors import OsbenchError, StoreUnreachable
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol import timers
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.wire import Wire
from osbench.worker.session.beat_log import BeatLog

LOG = logging.getLogger(__name__)

#: How long a heartbeat may take to be sent, seconds: after that the next one is due.
TIMEOUT_S = 1.0
#: How often this process is added to the set of workers, seconds.
LIST_S = 2.0


class BeatSender:
    """Thread that sends a heartbeat every `timers.BEAT_S` seconds, and soon after `wake`.

    `describe(number)` returns the heartbeat; it must not wait for anything.
    """

    def __init__(
        self,
        *,
        incarnation: str,
        connect: Callable[[float], Client],
        signer: Signer,
        log: BeatLog,
        describe: Callable[[int], Heartbeat],
    ) -> None:
        self._incarnation = incarnation
        self._client = connect(TIMEOUT_S)
        self._signer = signer
        self._log = log
        self._describe = describe
        self._beat = 0
        self._sent = float("-inf")
        self._listed = float("-inf")
        self._news = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Send the first heartbeat, then start the thread; an unreachable Redis is only logged.

        Raises StoreError if Redis refuses the heartbeat.
        """
        try:
            self._send()
        except StoreUnreachable as error:
            # a first packet that gets lost takes a connection longer than a heartbeat may take
            LOG.warning("%s; heartbeats continue", error)
        self._thread.start()

    def wake(self) -> None:
        """Send the next heartbeat soon, because of news; returns at once.

        Two heartbeats are at least `timers.NEWS_S` seconds apart.
        """
        self._news.set()

    def close(self) -> None:
        """End the thread, waiting at most three seconds, and close its connection to Redis."""
        self._ended = True
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(timeout=3 * TIMEOUT_S)
        self._client.close()

    def _loop(self) -> None:
        away = False
        while True:
            self._news.wait(max(0.0, self._sent + timers.BEAT_S - time.monotonic()))
            time.sleep(max(0.0, self._sent + timers.NEWS_S - time.monotonic()))
            if self._ended:
                return
            self._news.clear()
            try:
                self._send()
                away = False
            except StoreUnreachable as error:
                if not away:
                    LOG.warning("%s; heartbeats continue", error)
                away = True
            except OsbenchError as error:
                LOG.error("no heartbeat: %s", error)
            except Exception:
                LOG.exception("internal error in heartbeats; they continue")

    def _send(self) -> None:
        self._beat += 1
        # before all else: a lease counts from here
        self._log.note(self._beat, monotonic_ns())
        now = self._sent = time.monotonic()
        signed = self._signer.sign(Heartbeat.KIND, self._describe(self._beat).body())
        # repeated, because Redis may have lost it or a coordinator may have removed it
        listing = now - self._listed >= LIST_S
        if Wire(self._client).beat(self._incarnation, signed, listed=listing) and listing:
            self._listed = now
