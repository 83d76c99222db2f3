"""Sends the wills of worker processes that have ended, for their supervisor.

A will says which of its granted iterations a process cannot have started.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from oslo_config import cfg

from osbench.common.errors import OsbenchError, StoreUnreachable, Untrusted
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Control, Will
from osbench.common.protocol.redis_client import Client, connect
from osbench.common.protocol.store import Store
from osbench.common.protocol.timers import RESEND_S

LOG = logging.getLogger(__name__)

#: A will is sent again every `RESEND_S` for this long, then at growing intervals: a run whose
#: coordinator is gone must not fill Redis. Seconds.
OFTEN_S = 60.0
SELDOM_S = 60.0
#: Wills that are kept at most; the oldest is given up for another one.
KEPT = 256


@dataclass(kw_only=True)
class _Pending:
    """A will that is sent again until its membership, the process's part in a run, is over."""

    will: Will
    #: When it was written and when it is to be sent next, monotonic.
    since: float = field(default_factory=time.monotonic)
    due: float = 0.0
    pause_s: float = RESEND_S
    is_sent: bool = False
    is_over: bool = False


class WillSender:
    """Sends wills in a separate thread, each again and again until its membership is over.

    After two days a will is given up, with a warning in the log.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._url = conf.messaging.redis_url
        self._timeout_s = conf.messaging.redis_timeout_s
        self._key_file = conf.security.key_file
        self._pending: list[_Pending] = []
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._client: Client | None = None
        #: The last error, so that each error is logged once.
        self._told = ""

    def send(self, will: Will) -> None:
        """Queue a will to be sent, and start the thread if needed; returns at once.

        A will names the iterations that an ended process cannot have started. Beyond `KEPT` wills
        the oldest is given up, with a warning in the log.
        """
        with self._news:
            self._pending.append(_Pending(will=will))
            for given_up in self._pending[:-KEPT]:
                _tell_given_up(given_up.will)
            del self._pending[:-KEPT]
            self._news.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="wills", daemon=True)
                self._thread.start()

    def flush(self, timeout_s: float) -> None:
        """Wait until each will was sent once or is not needed, for at most `timeout_s` seconds.

        Logs the wills that were not sent. The thread goes on.
        """
        with self._news:
            self._news.wait_for(lambda: not self._unsent(), timeout_s)
            for one in self._unsent():
                _tell_given_up(one.will)

    def _unsent(self) -> list[_Pending]:
        return [one for one in self._pending if not one.is_sent]

    def _loop(self) -> None:
        while True:
            with self._news:
                now = time.monotonic()
                wait_s = min((one.due for one in self._pending), default=now + SELDOM_S) - now
                if wait_s > 0:
                    self._news.wait(wait_s)
                    continue
                due = [one for one in self._pending if one.due <= now]
            self._turn(due)
            with self._news:
                self._pending = [one for one in self._pending if not one.is_over]
                self._news.notify_all()

    def _turn(self, due: list[_Pending]) -> None:
        for one in due:
            now = time.monotonic()
            one.due = now + one.pause_s
            if now - one.since > redis_keys.RUN_TTL_S:
                _tell_given_up(one.will)
                one.is_over = True
                continue
            try:
                self._deliver(one)
            except StoreUnreachable as error:
                # nothing was added to Redis, so there is no need to wait longer
                one.due = now + RESEND_S
                self._tell(str(error))
                return
            except OsbenchError as error:
                self._tell(str(error))
            except Exception:
                LOG.exception("internal error in sending a will; it continues")
            else:
                self._told = ""

    def _deliver(self, one: _Pending) -> None:
        will = one.will
        # read each time: keys may be replaced during a run
        signer = Signer(Keyring.load(self._key_file))
        if self._client is None:
            self._client = connect(self._url, self._timeout_s)
        store = Store(self._client, will.run)
        if _is_over(will, signer, store.control(will.membership)):
            one.is_over = True
            return
        # a Redis that has lost the run has no place for it yet
        one.is_sent = bool(store.append(signer.sign(Will.KIND, will.body()))) or one.is_sent
        if time.monotonic() - one.since > OFTEN_S:
            one.pause_s = min(2 * one.pause_s, SELDOM_S)

    def _tell(self, problem: str) -> None:
        if problem != self._told:
            self._told = problem
            LOG.warning("the run of a lost worker process cannot be informed now: %s", problem)


def _is_over(will: Will, signer: Signer, record: bytes | None) -> bool:
    """Return whether the control record in `record` shows that the will's membership is over.

    False without a record, for a bad signature, and for another membership.
    """
    if record is None:
        return False
    try:
        control = Control.parse(signer.verify(Control.KIND, record))
    except Untrusted:
        return False
    names = (control.run, control.incarnation, control.membership)
    return control.over is True and names == (will.run, will.incarnation, will.membership)


def _tell_given_up(will: Will) -> None:
    LOG.warning(
        "run %s has not taken the will of worker process %s; it is not sent any more",
        will.run,
        will.incarnation,
    )
