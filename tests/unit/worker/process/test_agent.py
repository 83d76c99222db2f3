"""A worker process decides whom it serves, and says so whatever else it is at."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from helpers.engines import batch, until
from helpers.preparing import Preparing, specified
from osbench.common.errors import StoreUnreachable
from osbench.common.protocol import redis_keys, timers
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import (
    Batch,
    Block,
    Control,
    Heartbeat,
    Offer,
    Specification,
)
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.store import Store
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import UserLimits
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import agent, beat_sender
from osbench.worker.process.agent import Agent, Identity, Patience
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.refusals import Refusals
from servers import RedisServer, redis_server
from servers.child import PATIENCE_S

RING = Keyring.generate()
SIGNER, VAULT = Signer(RING), Vault(RING)
#: A silence of a coordinator that does not come within a test, seconds.
LONG_S = 1000.0


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats and looks follow each other ten times as fast as usual."""
    monkeypatch.setattr(timers, "BEAT_S", 0.05)
    monkeypatch.setattr(timers, "RESEND_S", 0.1)
    monkeypatch.setattr(beat_sender, "LIST_S", 0.2)
    monkeypatch.setattr(agent, "READ_S", 0.025)
    monkeypatch.setattr(agent, "EAGER_S", 0.005)
    monkeypatch.setattr(agent, "OFFER_S", 0.1)


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    with redis_server(unixsocket=True) as server:
        yield server


class Run:
    """A coordinator of one worker, which answers what a test has it answer."""

    def __init__(self, place: Place, run: str = "r") -> None:
        self.place = place
        self.store = Store(place.client, run)
        self.store.tend()
        self.session = secrets.token_hex(16)
        self.control = Control(
            run=run,
            epoch=1,
            incarnation="w",
            session=self.session,
            membership=self.session,
            version=0,
        )

    def offer(self, **changes: Any) -> Offer:
        """Offer the run, by what the worker's last heartbeat says."""
        beat = self.place.beat()
        offer = Offer(
            **{
                "run": self.control.run,
                "epoch": self.control.epoch,
                "incarnation": "w",
                "challenge": beat.challenge,
                "session": self.control.session,
                "membership": self.control.membership,
                **changes,
            }
        )
        self.place.put_offer(SIGNER.sign(Offer.KIND, offer.body()))
        return offer

    def join(self) -> None:
        self.offer()
        until(lambda: self.place.beat().session == self.control.session)

    def resume(self) -> None:
        """Begin another coordinator process."""
        self.control = replace(
            self.control, epoch=self.control.epoch + 1, session=secrets.token_hex(16), version=0
        )

    def tell(self, **changes: Any) -> None:
        """Write a control record that answers the last heartbeat."""
        answers = self.place.beat().beat
        self.control = replace(
            self.control, version=self.control.version + 1, **{"answers": answers, **changes}
        )
        signed = SIGNER.sign(Control.KIND, self.control.body())
        self.store.put_controls({self.control.membership: signed})

    def load(self, scenario: str, user_limit: int = 2) -> None:
        """Have a workload prepared and started."""
        vault = VAULT.encrypt(specified(0, scenario, run=self.control.run).body())
        data = SIGNER.sign(Specification.KIND, {"vault": vault})
        self.store.put_specifications({0: data})
        self.tell(workload=0, specification=hashlib.sha256(data).digest())
        until(lambda: self.place.beat().prepared == 0)
        assert self.place.beat().problem == ""
        seconds, micros = self.place.client.time()
        now = seconds + micros / 1e6
        self.tell(t0_at=now, told_at=now, user_limit=user_limit, generation=1)
        until(lambda: self.place.beat().generation == 1)

    def send(self, *intervals: tuple[int, int], seq: int = 1) -> None:
        one = replace(
            batch(*intervals, number=seq), run=self.control.run, session=self.control.session
        )
        self.place.agent.receive(SIGNER.sign(Batch.KIND, one.body()))

    def blocks(self) -> list[Block]:
        """All blocks, each once, by number."""
        entries = self.store.read(0, 1000)
        found = [Block.parse(SIGNER.verify(Block.KIND, entry)) for _, entry in entries]
        own = {one.number: one for one in found if one.membership == self.control.membership}
        return [own[number] for number in sorted(own)]

    def final(self) -> bool:
        """All blocks up to the last one have come."""
        blocks = self.blocks()
        return bool(blocks) and blocks[-1].final and len(blocks) == blocks[-1].number

    def acknowledge(self) -> None:
        self.tell(acknowledged=len(self.blocks()))


class Place:
    """A worker process, in this one, and the Redis that it uses."""

    def __init__(self, folder: Path, server: RedisServer, works: dict[str, Any]) -> None:
        self.client = connect(server.url, 5.0)
        self.client.flushall()
        self.refusals = Refusals()
        self.page = WillPage(WillPage.create().fd, "w")
        self.equipment = Equipment(
            incarnation="w",
            user_limits=UserLimits(threads=4, coroutines=1000),
            signer=SIGNER,
            vault=VAULT,
            preparation=Preparing(**works),
            refusals=self.refusals,
            sleep=PreciseSleep(0.0),
            spool_dir=folder / "spool",
            spool_limit_bytes=1 << 20,
            page=self.page,
        )
        self.server = server
        self.agent: Agent

    def start(self, **patience: Any) -> None:
        values = {"redis_timeout_s": 5.0, "coordinator_lost_s": LONG_S, "max_stuck": 2}
        self.agent = Agent(
            identity=Identity(incarnation="w", host="h", pid=1, label=""),
            connect=lambda bound_s: connect(self.server.url, bound_s),
            equipment=self.equipment,
            patience=Patience(**{**values, **patience}),
        )
        self.agent.start()

    def beat(self) -> Heartbeat:
        """The last heartbeat; that of a worker that got no core for a while has expired."""
        found: list[bytes] = []

        def there() -> bool:
            data = self.client.get(redis_keys.worker("w"))
            found.extend([data] if data is not None else [])
            return bool(found)

        until(there)
        return Heartbeat.parse(SIGNER.verify(Heartbeat.KIND, found[0]))

    def beats_later(self, count: int = 2) -> Heartbeat:
        """A heartbeat that was sent some heartbeats after now."""
        now = self.beat().beat
        until(lambda: self.beat().beat >= now + count)
        return self.beat()

    def beat_after_offers(self) -> Heartbeat:
        """A heartbeat sent after the agent has read and considered the offer that is there now."""
        # it begins to read offers twice more, so it has done with the first of these
        for _ in range(2):
            before = self.agent._offer_at
            until(lambda before=before: self.agent._offer_at != before)
        return self.beats_later(2)

    def put_offer(self, data: bytes) -> None:
        self.client.set(redis_keys.offer("w"), data)

    def wait_for_coordinators(self, lost_s: float) -> None:
        """Have a coordinator's silence last so long before it counts as lost."""
        self.agent._patience = replace(self.agent._patience, coordinator_lost_s=lost_s)

    def end(self) -> None:
        self.agent.drain()
        session = self.agent._session
        if session is not None:
            session.over = True
        self.agent._left.close()
        self.agent.done.wait(PATIENCE_S)
        self.agent.deregister()
        self.client.close()


@contextmanager
def working(
    folder: Path,
    server: RedisServer,
    works: dict[str, Callable[..., Any]] | None = None,
    **patience: Any,
) -> Iterator[Place]:
    found = Place(folder, server, works or {})
    found.start(**patience)
    try:
        yield found
    finally:
        found.end()


def quick(scenario):
    pass


def test_a_worker_joins_and_serves_a_run_to_its_end(tmp_path, shared):
    with working(tmp_path, shared, {"quick": quick}) as place:
        free = place.beat()
        run = Run(place)
        run.join()
        joined = place.beat()
        run.load("quick")
        run.send((1, 101))
        until(lambda: sum(one.columns.get("rows", 0) for one in run.blocks()) == 100)
        run.acknowledge()
        run.tell(over=True)
        until(lambda: place.beat().run == "")

        assert (free.state, free.run, free.session) == ("idle", "", "")
        assert (joined.run, joined.epoch) == ("r", 1)
        assert joined.session == joined.membership == run.session
        assert place.beat().state == "idle"
        assert len({free.challenge, joined.challenge, place.beat().challenge}) == 3
        assert place.refusals.counts() == {}


def test_records_of_a_finished_run_that_are_put_back_start_nothing(tmp_path, shared):
    with working(tmp_path, shared, {"quick": quick}) as place:
        run = Run(place)
        run.join()
        offer = place.client.get(redis_keys.offer("w"))
        run.load("quick")
        run.send((1, 11))
        control = run.store.control(run.session)
        run.tell(over=True)
        until(lambda: place.beat().run == "")

        place.put_offer(b"something else")
        place.beat_after_offers()
        place.put_offer(offer)
        run.store.put_controls({run.session: control})
        run.send((1, 11))
        after = place.beat_after_offers()

        assert after.run == ""
        assert after.refusals == {"bad signature": 1, "old challenge": 1, "no run": 1}


@pytest.mark.parametrize(
    "junk", [b"\xff\xfe\x1b[31m", b"\x00" * 5_000_000, b"", "list", "stranger", "kind", "fields"]
)
def test_junk_in_place_of_an_offer_hurts_nobody(tmp_path, shared, junk):
    with working(tmp_path, shared) as place:
        if junk == "list":
            place.client.rpush(redis_keys.offer("w"), "x")
        elif junk == "stranger":
            place.put_offer(Signer(Keyring.generate()).sign(Offer.KIND, {"run": "r"}))
        elif junk == "kind":
            place.put_offer(SIGNER.sign(Control.KIND, {"run": "r"}))
        elif junk == "fields":
            place.put_offer(SIGNER.sign(Offer.KIND, {"run": "r", "other": 1}))
        else:
            place.put_offer(junk)
        after = place.beat_after_offers()
        place.client.delete(redis_keys.offer("w"))
        Run(place).join()

        assert after.run == ""
        assert after.refusals == ({} if junk in (b"", "list") else {"bad signature": 1})


def test_an_offer_to_another_worker_is_refused(tmp_path, shared):
    with working(tmp_path, shared) as place:
        Run(place).offer(incarnation="x")

        assert place.beat_after_offers().refusals == {"other worker": 1}


def test_a_worker_in_a_run_follows_no_other(tmp_path, shared):
    with working(tmp_path, shared) as place:
        run = Run(place)
        run.join()
        other = Run(place, "other")
        other.offer()
        # one that is in a run reads offers now and then only
        until(lambda: place.beat().refusals == {"other run": 1})

        assert place.beat().run == "r"


def test_an_offer_that_is_repeated_is_not_followed_again(tmp_path, shared):
    with working(tmp_path, shared) as place:
        run = Run(place)
        run.join()
        challenge = place.beat().challenge
        run.offer()
        after = place.beat_after_offers()

        assert after.challenge == challenge
        assert after.refusals == {}


def test_the_next_coordinator_of_a_run_finds_the_membership_as_it_was(tmp_path, shared):
    go = threading.Event()
    with working(tmp_path, shared, {"slow": lambda scenario: go.wait(PATIENCE_S)}) as place:
        run = Run(place)
        run.join()
        run.load("slow")
        run.send((1, 6))
        until(lambda: place.beat().busy == 2)
        before = place.beat()

        run.resume()
        run.join()
        # one that is sent while the session is taken over may still have the challenge before
        until(lambda: place.beat().challenge != before.challenge)
        after = place.beat()
        run.tell(recall=[1])
        until(lambda: any(one.returned for one in run.blocks()))
        go.set()
        until(lambda: sum(one.columns.get("rows", 0) for one in run.blocks()) == 2)

        assert after.membership == before.membership == run.session
        assert after.session != before.session
        assert (after.epoch, after.got) == (2, 1)


def test_a_coordinator_that_is_not_heard_is_left_and_the_rest_comes_back(tmp_path, shared):
    go = threading.Event()
    works = {"slow": lambda scenario: go.wait(PATIENCE_S)}
    with working(tmp_path, shared, works) as place:
        run = Run(place)
        run.join()
        run.load("slow")
        run.send((1, 6))
        until(lambda: place.beat().busy == 2)
        place.wait_for_coordinators(0.0)
        until(lambda: place.beat().state == "draining")
        waiting = place.beat().membership
        go.set()
        until(lambda: place.beat().run == "")
        until(run.final)

        assert waiting == run.session
        assert place.beat().state == "idle"
        returned = [part for one in run.blocks() for part in one.returned]
        assert [tuple(part) for part in returned] == [(3, 6)]


def test_what_was_left_is_delivered_while_the_next_run_is_served(tmp_path, shared):
    with working(tmp_path, shared) as place:
        run = Run(place)
        run.join()
        place.wait_for_coordinators(0.0)
        until(lambda: place.beat().run == "")
        place.wait_for_coordinators(LONG_S)
        other = Run(place, "other")
        other.join()
        # Redis loses what was sent: nobody has confirmed it
        until(run.final)
        run.store.delete([entry for entry, _ in run.store.read(0, 1000)])
        until(run.final)
        left = place.agent._left.memberships()
        run.acknowledge()
        until(lambda: not place.agent._left.memberships())

        assert left == [("r", run.session)]
        assert place.beat().run == "other"


def test_a_last_block_that_cannot_be_sent_ends_the_membership(tmp_path, shared, monkeypatch):
    with working(tmp_path, shared) as place:
        append, barred = Store.append, threading.Event()

        def barring(store, entry, *, instead_of=""):
            if barred.is_set():
                raise StoreUnreachable("no answer")
            return append(store, entry, instead_of=instead_of)

        monkeypatch.setattr(Store, "append", barring)
        barred.set()
        run = Run(place)
        run.join()
        challenge = place.beat().challenge
        place.wait_for_coordinators(0.0)
        until(lambda: place.beat().run == "")
        run.resume()
        run.offer(challenge=challenge)
        after = place.beat_after_offers()
        barred.clear()
        until(run.final)

        assert after.run == ""
        assert after.challenge != challenge
        assert after.refusals == {"old challenge": 1}


def test_draining_waits_for_what_runs_and_for_its_acknowledgement(tmp_path, shared):
    go = threading.Event()
    with working(tmp_path, shared, {"slow": lambda scenario: go.wait(PATIENCE_S)}) as place:
        run = Run(place)
        run.join()
        run.load("slow")
        run.send((1, 6))
        until(lambda: place.beat().busy == 2)
        place.agent.drain()
        until(lambda: place.beat().state == "draining")
        run.tell()
        running = place.agent.done.is_set()
        go.set()
        until(run.final)
        unheard = place.agent.done.is_set()
        run.acknowledge()

        assert place.agent.done.wait(PATIENCE_S)
        assert (running, unheard) == (False, False)


def test_a_worker_that_drains_follows_no_offer(tmp_path, shared):
    with working(tmp_path, shared) as place:
        run = Run(place)
        offer = run.offer(challenge="x")
        place.agent._draining.set()
        refusal = place.agent._consider(
            SIGNER.sign(Offer.KIND, replace(offer, challenge=place.agent._place[1]).body())
        )

        assert refusal == ""
        assert place.agent._session is None


def test_stuck_threads_count_after_their_run_has_ended(tmp_path, shared):
    go = threading.Event()
    with working(
        tmp_path, shared, {"slow": lambda scenario: go.wait(PATIENCE_S)}, max_stuck=2
    ) as place:
        run = Run(place)
        run.join()
        vault = VAULT.encrypt(specified(0, "slow", timeout_s=0.5).body())
        data = SIGNER.sign(Specification.KIND, {"vault": vault})
        run.store.put_specifications({0: data})
        run.tell(workload=0, specification=hashlib.sha256(data).digest())
        until(lambda: place.beat().prepared == 0)
        run.tell(t0_at=1.0, told_at=1.0, user_limit=2, generation=1)
        run.send((1, 3))
        until(lambda: place.beat().state == "stuck")
        until(run.final)
        run.acknowledge()
        until(lambda: place.beat().run == "")
        stuck = place.beat()
        Run(place, "other").offer()
        declined = place.beat_after_offers()
        go.set()
        until(lambda: place.beat().state == "idle")

        assert (stuck.state, stuck.stuck) == ("stuck", 2)
        assert declined.run == ""


def test_a_worker_that_says_it_is_stuck_leaves_though_it_is_no_more(tmp_path, shared, monkeypatch):
    with working(tmp_path, shared, max_stuck=1) as place:
        run = Run(place)
        run.join()
        # for one look of the agent
        looks = iter([True])
        monkeypatch.setattr(place.agent, "_is_stuck", lambda: next(looks, False))
        until(run.final)
        run.acknowledge()
        until(lambda: place.beat().run == "")

        until(lambda: place.beat().state == "idle")


def test_heartbeats_go_on_while_the_agent_is_held_up(tmp_path, shared, monkeypatch):
    held, go = threading.Event(), threading.Event()
    with working(tmp_path, shared) as place:
        monkeypatch.setattr(place.agent, "_read", lambda: held.set() or go.wait(PATIENCE_S))
        assert held.wait(PATIENCE_S)

        place.beats_later(5)
        go.set()


def test_news_are_told_at_once(tmp_path, shared, monkeypatch):
    monkeypatch.setattr("osbench.common.protocol.timers.BEAT_S", LONG_S)
    with working(tmp_path, shared) as place:
        first = place.beat().beat
        Run(place).join()

        assert place.beat().beat > first


def test_a_worker_outlives_a_redis_that_loses_everything(tmp_path):
    with redis_server() as server, working(tmp_path, server, {"quick": quick}) as place:
        run = Run(place)
        run.join()
        run.load("quick")
        run.send((1, 11))
        until(lambda: sum(one.columns.get("rows", 0) for one in run.blocks()) == 10)
        server.restart()

        def heard() -> bool:
            data = place.client.get(redis_keys.worker("w"))
            return data is not None and place.client.sismember(redis_keys.WORKERS, "w")

        until(lambda: _answers(heard))
        run.store.tend()
        until(lambda: sum(one.columns.get("rows", 0) for one in run.blocks()) == 10)
        run.acknowledge()
        run.send((11, 21), seq=2)
        # nobody has deleted the first ones
        until(lambda: sum(one.columns.get("rows", 0) for one in run.blocks()) == 20)

        assert place.beat().membership == run.session


def _answers(met: Callable[[], bool]) -> bool:
    try:
        return met()
    except (redis.RedisError, AssertionError):
        return False


def test_heartbeats_go_on_after_redis_was_hung(tmp_path, monkeypatch):
    monkeypatch.setattr(beat_sender, "TIMEOUT_S", 0.5)
    with redis_server() as server, working(tmp_path, server, redis_timeout_s=1.0) as place:
        before = place.beat().beat
        server.pause()
        # heartbeats, which give up sooner, have given up then
        until(lambda: place.agent._away)
        server.resume()
        until(lambda: _answers(lambda: place.beat().beat > before + 2))

        assert place.beat().state == "idle"


@pytest.mark.parametrize("data", [b"junk", "text", None, 7, b""])
def test_junk_in_place_of_a_batch_is_counted(tmp_path, shared, data):
    with working(tmp_path, shared) as place:
        place.agent.receive(data)

        assert place.beats_later().refusals == {"bad signature": 1}


def test_the_page_tells_of_the_membership_until_its_blocks_are_delivered(tmp_path, shared):
    with working(tmp_path, shared, {"quick": quick}) as place:
        run = Run(place)
        run.join()
        run.load("quick")
        run.send((1, 11))
        place.wait_for_coordinators(0.0)
        until(lambda: place.beat().run == "")
        left = place.page.read()
        until(run.final)
        run.acknowledge()
        until(lambda: place.page.read() is None)

        assert (left.run, left.membership, left.incarnation) == ("r", run.session, "w")


def test_a_worker_that_has_ended_leaves_no_heartbeat(tmp_path, shared):
    with working(tmp_path, shared):
        pass

    with shared.client() as client:
        gone = client.get(redis_keys.worker("w"))
        time.sleep(4 * timers.BEAT_S)
        assert gone is client.get(redis_keys.worker("w")) is None
        assert not client.sismember(redis_keys.WORKERS, "w")
