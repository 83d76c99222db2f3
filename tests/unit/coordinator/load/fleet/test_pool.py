"""Who is in a run is what workers say, whatever has become of the offers that they followed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from osbench import __version__
from osbench.common.errors import FleetError, OlderCopy, StoreUnreachable, Superseded
from osbench.common.protocol.messages import Heartbeat, Offer
from osbench.coordinator.load.fleet import pool
from osbench.coordinator.load.fleet.heartbeats import OTHER_VERSION
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.load.fleet.pool import WorkerPool
from osbench.coordinator.load.fleet.worker_request import Shortage, WorkerRequest
from osbench.coordinator.load.fleet.zones import ZoneShares

FREE = heartbeat("w1", state="idle", challenge="c1")
JOINED = replace(
    FREE, beat=2, state="preparing", run="r", epoch=2, session="s1", membership="m1", challenge="c2"
)


class Desk:
    """A pool of the second coordinator of a run; offers and memberships are noted."""

    def __init__(self) -> None:
        self.beats: list[Heartbeat] = []
        self.offers: list[Offer] = []
        self.joined: list[str] = []
        self.missed: list[tuple[str, list[int]]] = []
        self.away = False
        #: How many looks at the heartbeats fail.
        self.failing = 0
        self.refused = self.unverified = 0
        self.unverified_names: list[str] = []
        reader: Any = self
        self.pool = WorkerPool(self, reader, "r")
        self.pool.epoch = 2

    def present(self, *, relist: bool = True) -> list[Heartbeat]:
        if self.failing:
            self.failing -= 1
            raise StoreUnreachable("Redis does not respond")
        return self.beats

    def join(self, mid: str, incarnation: str) -> Membership:
        self.joined.append(mid)
        return Membership(mid=mid, incarnation=incarnation, name=incarnation)

    def miss(self, membership: Membership, blocks: Sequence[int]) -> None:
        self.missed.append((membership.mid, list(blocks)))
        for number in blocks:
            membership.note(number)

    def offer(self, offers: Iterable[Offer]) -> None:
        if self.away:
            raise StoreUnreachable("Redis does not respond")
        self.offers += offers

    def forget(self, incarnation: str) -> None:
        raise AssertionError(incarnation)

    def poll(self, *beats: Heartbeat) -> None:
        self.beats = list(beats)
        self.pool.poll()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_free_worker_is_offered_the_run_by_its_challenge_until_it_joins(desk):
    desk.poll(FREE)
    desk.pool.invite(1)
    desk.pool.invite(1)

    assert {one.challenge for one in desk.offers} == {"c1"}
    assert len({one.session for one in desk.offers}) == 1
    assert desk.pool.present == []


def test_who_follows_an_offer_that_was_forgotten_is_in_the_run(desk):
    desk.poll(JOINED)

    assert desk.joined == ["m1"]
    (worker,) = desk.pool.present
    assert (worker.session, worker.silence_s > 1) == ("s1", False)


ONE = WorkerRequest(count=1, least=1, threads=1, coroutines=0, wait_s=60.0)


def test_workers_are_waited_for_while_redis_is_away(desk):
    desk.beats = [JOINED]
    desk.failing = 3

    desk.pool.gather(ONE, check=lambda: None, say=print, patience_s=60.0)

    assert (desk.failing, desk.joined) == (0, ["m1"])


def test_a_shortage_of_workers_without_users_has_a_message():
    asked = replace(ONE, threads=0)
    short = Shortage(request=asked, got=0, threads=0, coroutines=0)

    assert (
        short.waiting()
        == "waiting up to 60 s for workers: 0 of 0 virtual users (0 worker processes)."
    )
    assert "1 worker process requested and 0 free after 60 s" in short.refusal()


OTHER = replace(FREE, incarnation="w9", version="0.0.1", state=OTHER_VERSION)


def test_a_worker_of_another_version_is_not_invited_and_named(desk):
    desk.beats = [OTHER]

    with pytest.raises(FleetError) as raised:
        desk.pool.gather(replace(ONE, wait_s=0.0), check=lambda: None, say=print)

    assert desk.offers == []
    assert f"1 worker process of another version of osbench than {__version__}" in str(raised.value)
    assert "(h:7 has 0.0.1): install the same version there." in str(raised.value)


def test_a_run_names_workers_that_seemed_free_and_did_not_join(desk, monkeypatch):
    monkeypatch.setattr(pool, "STRAGGLERS_S", 0.0)
    desk.beats = [JOINED, replace(FREE, incarnation="host-7.41.abcdef")]
    said: list[str] = []

    desk.pool.gather(replace(ONE, count=None), check=lambda: None, say=said.append)

    expected = (
        "1 worker process that seemed free did not join in time (host-7.41): going on without."
    )
    assert said == [expected]


def test_a_run_with_enough_workers_says_which_it_leaves_out(desk):
    desk.beats = [JOINED, OTHER]
    said: list[str] = []

    desk.pool.gather(ONE, check=lambda: None, say=said.append)

    (line,) = said
    assert "(h:7 has 0.0.1)" in line


def test_a_worker_with_another_key_gets_an_offer_that_it_cannot_follow(desk):
    desk.beats, desk.unverified_names = [JOINED], ["h.3.c"]

    desk.pool.gather(ONE, check=lambda: None, say=print)

    (hint,) = [one for one in desk.offers if one.incarnation == "h.3.c"]
    assert (hint.challenge, hint.session) == ("", "")


def test_nobody_waits_for_redis_longer_than_it_takes_to_lose_patience(desk):
    desk.beats = [JOINED]
    desk.failing = 1_000_000

    with pytest.raises(StoreUnreachable):
        desk.pool.gather(ONE, check=lambda: None, say=print, patience_s=0.1)


def test_an_old_heartbeat_that_is_put_back_changes_no_session(desk):
    desk.poll(replace(JOINED, beat=9))

    desk.poll(replace(JOINED, beat=3, session="s0"))

    assert desk.pool.workers["m1"].session == "s1"


def test_a_worker_of_the_earlier_coordinator_is_asked_along_under_its_membership(desk):
    desk.poll(replace(JOINED, epoch=1))

    (offer,) = desk.offers
    assert (offer.membership, offer.challenge, offer.epoch) == ("m1", "c2", 2)
    assert offer.session != "s1"
    assert (desk.pool.present, desk.pool.hesitant) == ([], 1)


def test_a_worker_that_comes_along_while_redis_fails_is_taken_with_the_next_poll(desk):
    earlier = replace(JOINED, epoch=1)
    other = replace(earlier, incarnation="w0", membership="m0")
    desk.poll(earlier, other)
    desk.away = True
    with pytest.raises(StoreUnreachable):
        desk.poll(other, replace(JOINED, beat=3, session=desk.offers[0].session))
    desk.away = False

    desk.poll(other, replace(JOINED, beat=4, session=desk.offers[0].session))

    assert [worker.mid for worker in desk.pool.present] == ["m1"]


def test_a_coordinator_that_was_replaced_ends(desk):
    with pytest.raises(Superseded, match="another coordinator has resumed run r"):
        desk.poll(replace(JOINED, epoch=3))


def test_a_journal_that_knows_less_than_a_worker_is_an_older_copy(desk):
    desk.pool.restore(Membership(mid="m1", incarnation="w1", name="w1", seq=7))
    desk.poll(replace(JOINED, epoch=1, got=7))

    with pytest.raises(OlderCopy, match="has 7 batches of worker w1, which has taken 9"):
        desk.poll(replace(JOINED, epoch=1, beat=3, got=9))


def test_blocks_that_were_acknowledged_and_are_not_on_disk_are_journalled_once(desk):
    known = Membership(mid="m1", incarnation="w1", name="w1", acknowledged=6, have={9, 10})
    desk.pool.restore(known)

    for beat in (2, 3):
        desk.poll(replace(JOINED, epoch=1, beat=beat, made=12, delivered=10))

    assert desk.missed == [("m1", [7, 8])]
    assert known.acknowledged == 10


def test_workers_of_an_earlier_coordinator_are_unheard_until_they_follow_or_are_gone(desk):
    desk.pool.restore(Membership(mid="m1", incarnation="w1", name="w1"))
    desk.pool.restore(Membership(mid="m2", incarnation="w2", name="w2"))

    before = [one.mid for one in desk.pool.unheard]
    # one follows this coordinator, and the other says that it is in no run
    desk.poll(JOINED, heartbeat("w2", beat=3, state="idle"))

    assert before == ["m1", "m2"]
    assert desk.pool.unheard == []


def test_a_worker_of_an_earlier_coordinator_that_has_left_meanwhile_is_invited_anew(desk):
    desk.pool.restore(Membership(mid="m1", incarnation="w1", name="w1"))
    # Redis has gone back to when it was in the run
    desk.poll(replace(JOINED, epoch=1))
    taken_over = desk.offers[-1]

    desk.poll(replace(FREE, beat=9, challenge="c9"))
    desk.pool.invite(1)

    assert (taken_over.challenge, taken_over.membership) == ("c2", "m1")
    assert desk.offers[-1].challenge == "c9"
    assert desk.offers[-1].session == desk.offers[-1].membership != "m1"


ZONES = ZoneShares({"eu": 300_000, "us": 700_000})


def free(name: str, label: str) -> Heartbeat:
    return replace(FREE, incarnation=name, label=label, challenge=f"c-{name}")


def test_a_place_is_kept_for_a_zone_without_a_worker(desk):
    reader: Any = desk
    desk.pool = WorkerPool(desk, reader, "r", ZONES)
    desk.poll(free("w1", "us"), free("w2", "us/rack-2"), free("w3", "elsewhere"))
    desk.pool.invite(2)

    assert {one.incarnation for one in desk.offers} == {"w1"}

    desk.poll(free("w1", "us"), free("w2", "us"), free("w3", "elsewhere"), free("w4", "eu"))
    desk.pool.invite(2)

    assert {one.incarnation for one in desk.offers} == {"w1", "w4"}


def test_a_zone_without_a_worker_is_waited_for_and_named():
    asked = replace(ONE, count=2, zones=ZONES)
    short = Shortage(request=asked, got=2, threads=9, coroutines=9, absent=["eu"], unseen=["eu"])

    assert not short.is_met
    assert short.waiting().endswith("(2 of 2 worker processes), none of zone eu.")
    assert short.refusal().startswith("no free worker of zone eu within 60 s, which have")
    assert "osbench-worker --label eu" in short.refusal()
    joined = replace(short, absent=[], unseen=[])
    assert joined.is_met
    lacking = replace(joined, got=1, unfit=2).refusal()
    assert lacking.startswith("2 worker processes requested and 1 free after 60 s.")
    assert "2 worker processes of zones without a share are not used." in lacking
