"""What a worker process has left is delivered, or given up, but never in silence."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.local_redis import LocalStore
from osbench.common.errors import StoreUnreachable
from osbench.common.protocol import redis_keys, timers
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Control
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import UserLimits
from osbench.worker.session import left_memberships as module
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.left_memberships import LeftMemberships
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.refusals import Refusals

RING = Keyring.generate()
SIGNER = Signer(RING)


class Wire(LocalStore):
    """A store of a run that may not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.tend()
        self.away = False
        self.tries = 0

    def append(self, entry, *, instead_of=""):
        self.tries += 1
        if self.away:
            raise StoreUnreachable("no answer")
        return super().append(entry, instead_of=instead_of)


@dataclass
class Ended:
    """A session that has ended, with some blocks."""

    run: str
    membership: str
    store: Wire
    outbox: Outbox


class Bench:
    """Memberships that a process has left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refusals = Refusals()
        self.left = LeftMemberships(
            Equipment(
                incarnation="w",
                user_limits=UserLimits(threads=1, coroutines=1),
                signer=SIGNER,
                vault=Vault(RING),
                preparation=None,
                refusals=self.refusals,
                sleep=PreciseSleep(0.0),
                spool_dir=folder,
                spool_limit_bytes=1000,
            )
        )

    def leave(self, membership: str, blocks: int = 3) -> Ended:
        outbox = Outbox(self.folder / membership, 1000)
        for _ in range(blocks):
            outbox.put(membership.encode())
        ended = Ended(run="r", membership=membership, store=Wire(), outbox=outbox)
        self.left.add(ended)
        return ended

    def tell(self, membership: str, signer: Signer = SIGNER, **fields) -> None:
        values = {
            "run": "r",
            "epoch": 1,
            "incarnation": "w",
            "session": "any",
            "membership": membership,
            "version": 1,
        }
        control = Control(**{**values, **fields})
        self.left.follow("r", membership, signer.sign(Control.KIND, control.body()))

    def names(self) -> list[str]:
        return [membership for _, membership in self.left.memberships()]


@pytest.fixture
def bench(tmp_path):
    found = Bench(tmp_path)
    yield found
    found.left.close()


def sent(ended: Ended) -> int:
    return len(ended.store.read(0, 1000))


def test_blocks_are_sent_and_kept_until_they_are_acknowledged(bench):
    ended = bench.leave("m")
    bench.left.send()
    assert sent(ended) == 3

    bench.tell("m", acknowledged=1, have=[3])
    assert bench.names() == ["m"]
    bench.tell("m", acknowledged=3)

    assert bench.names() == []
    assert list(bench.folder.iterdir()) == []


def test_a_membership_with_nothing_to_deliver_is_not_kept(bench):
    bench.leave("m", blocks=0)

    assert bench.names() == []
    assert not bench.left.expected()


def test_blocks_leave_memory(bench):
    ended = bench.leave("m")

    assert (bench.folder / "m").stat().st_size == 3
    assert len(list(ended.outbox.unacknowledged())) == 3


def test_when_the_run_is_over_nothing_more_is_sent(bench):
    ended = bench.leave("m")

    bench.tell("m", over=True)
    bench.left.send()

    assert bench.names() == []
    assert sent(ended) == 0


@pytest.mark.parametrize("field", ["run", "incarnation", "membership"])
def test_records_of_others_acknowledge_nothing(bench, field):
    bench.leave("m")
    record = Control(
        **{
            "run": "r",
            "epoch": 1,
            "incarnation": "w",
            "session": "any",
            "membership": "m",
            "version": 1,
            "acknowledged": 3,
            field: "x",
        }
    )
    data = SIGNER.sign(Control.KIND, record.body())
    for _ in range(3):
        bench.left.follow("r", "m", data)

    assert bench.names() == ["m"]
    assert bench.refusals.counts() == {"other session": 1}


def test_forged_records_acknowledge_nothing(bench):
    bench.leave("m")

    bench.tell("m", Signer(Keyring.generate()), acknowledged=3)
    bench.left.follow("r", "m", b"\xc1")
    bench.left.follow("r", "m", None)

    assert bench.names() == ["m"]
    assert bench.refusals.counts() == {"bad signature": 2}


def test_the_oldest_makes_room_and_that_is_told(bench, caplog):
    for number in range(timers.LEFT_MOST + 2):
        bench.leave(f"m{number}")

    assert bench.names() == [f"m{number}" for number in range(2, timers.LEFT_MOST + 2)]
    assert caplog.text.count("3 result blocks are given up") == 2
    assert not (bench.folder / "m0").exists()


def test_after_two_days_they_are_given_up(bench, monkeypatch, caplog):
    bench.leave("m")

    monkeypatch.setattr(redis_keys, "RUN_TTL_S", -1)
    bench.left.send()

    assert bench.names() == []
    assert "two days" in caplog.text


def test_a_store_that_is_away_is_waited_for(bench):
    one, two = bench.leave("one"), bench.leave("two")
    one.store.away = True
    bench.left.send()
    waits = two.store.tries

    one.store.away = False
    bench.left.send()

    assert waits == 0
    assert (sent(one), sent(two)) == (3, 3)


def test_blocks_that_nobody_asks_for_do_not_pile_up(bench, monkeypatch):
    monkeypatch.setattr(timers, "RESEND_S", 0.0)
    ended = bench.leave("m")
    for _ in range(5):
        bench.left.send()

    assert ended.store.tries == 15
    assert sent(ended) == 3


def test_a_run_that_fell_silent_gets_them_rarely_until_it_is_heard(bench, monkeypatch):
    ended = bench.leave("m")
    for _ in range(10):
        for kept in ended.outbox._kept.values():
            kept.due = 0.0
        bench.left._left[0].heard = time.monotonic() - 2 * module.RARELY_S
        bench.left.send()
    silent_s = ended.outbox._kept[3].due - time.monotonic()

    bench.tell("m", acknowledged=2)
    heard_s = ended.outbox._kept[3].due - time.monotonic()

    assert silent_s > timers.RESEND_MOST_S
    assert heard_s <= timers.RESEND_S


def test_they_are_expected_to_be_acknowledged_for_a_while(bench, monkeypatch):
    bench.leave("m")
    unsent = bench.left.expected()
    bench.left.send()
    heard = bench.left.expected()
    monkeypatch.setattr(timers, "SETTLE_S", -1.0)

    assert (unsent, heard, bench.left.expected()) == (True, True, False)
