"""Memberships that this process has left and whose last blocks are still to be delivered.

A membership is a worker process's part in one run; its blocks carry its results.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from osbench.common.errors import OsbenchError, StoreUnreachable, Untrusted
from osbench.common.ports import clock as time
from osbench.common.protocol import redis_keys, timers
from osbench.common.protocol.messages import Control
from osbench.common.protocol.store import Store
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.refusals import BAD_SIGNATURE, OTHER_SESSION
from osbench.worker.session.session import Session

LOG = logging.getLogger(__name__)

#: While no sign of the run is received, all is finally sent again at this distance, seconds: it
#: lies in the run's results, and a coordinator that resumes the run finds it there.
RARELY_S = 60.0


@dataclass(kw_only=True)
class _Left:
    run: str
    membership: str
    store: Store
    outbox: Outbox
    record: bytes = b""
    #: When it was left, and when its control record changed last, monotonic seconds.
    since: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)


class LeftMemberships:
    """Outboxes of up to `timers.LEFT_MOST` memberships that have ended; sends their blocks again.

    A membership stays until all its blocks are acknowledged. Used by the agent's thread only.
    """

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._left: list[_Left] = []

    def add(self, session: Session) -> None:
        """Move the undelivered blocks of an ended session to its spool file, and send them later.

        If there are none, its outbox is closed. Beyond the limit the oldest membership is given up,
        with an error in the log.
        """
        if not len(session.outbox):
            session.outbox.close()
            return
        session.outbox.unload()
        self._left.append(
            _Left(
                run=session.run,
                membership=session.membership,
                store=session.store,
                outbox=session.outbox,
            )
        )
        for one in self._left[: -timers.LEFT_MOST]:
            self._forget(one, "there are too many runs with such")

    def memberships(self) -> list[tuple[str, str]]:
        """Return (run, membership) of each, so that the agent reads its control record."""
        return [(one.run, one.membership) for one in self._left]

    def follow(self, run: str, membership: str, data: bytes | None) -> None:
        """Drop the blocks of a membership that the control record `data` acknowledges.

        Drops all blocks if the record ends the membership. A membership without blocks is removed.
        After a long silence all blocks are sent again soon. None and an unchanged record are
        ignored; a record that is not trusted, or of another membership, is counted as refused.
        """
        for one in self._left:
            if (one.run, one.membership) == (run, membership) and data not in (None, one.record):
                assert data is not None
                one.record = data
                self._follow(one, data)
        self._left = [one for one in self._left if len(one.outbox)]

    def _follow(self, one: _Left, data: bytes) -> None:
        equipment = self._equipment
        try:
            control = Control.parse(equipment.signer.verify(Control.KIND, data))
        except Untrusted:
            equipment.refusals.count(BAD_SIGNATURE, "a control record")
            return
        named = (control.run, control.incarnation, control.membership)
        if named != (one.run, equipment.incarnation, one.membership):
            equipment.refusals.count(OTHER_SESSION, "a control record")
            return
        if time.monotonic() - one.heard > timers.RESEND_MOST_S:
            one.outbox.rush()
        one.heard = time.monotonic()
        one.outbox.acknowledge(control.acknowledged, control.have)
        if control.over:
            one.outbox.clear()
        if not len(one.outbox):
            one.outbox.close()

    def send(self) -> None:
        """Send the blocks that are due, of all memberships.

        Returns at once if Redis is unreachable. Blocks that Redis refuses stay due and do not hold
        up other memberships. A membership left two days ago is given up, with an error in the log.
        """
        now = time.monotonic()
        for one in list(self._left):
            if now - one.since > redis_keys.RUN_TTL_S:
                self._forget(one, "no coordinator requested them in two days")
                continue
            known = now - one.heard < RARELY_S
            try:
                one.outbox.send(one.store, timers.RESEND_MOST_S if known else RARELY_S)
            except StoreUnreachable:
                # it would be waited for again for each run
                return
            except OsbenchError as error:
                LOG.debug("run %s: its last results cannot be sent now: %s", one.run, error)

    def expected(self) -> bool:
        """Return whether acknowledgements may still come, so that the process waits for them.

        True if any blocks were never sent, or a control record changed in the last
        `timers.SETTLE_S` seconds.
        """
        now = time.monotonic()
        return any(one.outbox.unsent or now - one.heard < timers.SETTLE_S for one in self._left)

    def close(self) -> None:
        """Drop all blocks, with a warning for each run, and remove their files."""
        for one in list(self._left):
            LOG.warning(
                "run %s: its coordinator did not confirm %d result blocks; blocks that it has not "
                "received are lost",
                one.run,
                len(one.outbox),
            )
            one.outbox.close()
        self._left.clear()

    def _forget(self, one: _Left, why: str) -> None:
        LOG.error("run %s: %d result blocks are given up: %s", one.run, len(one.outbox), why)
        one.outbox.close()
        self._left.remove(one)
