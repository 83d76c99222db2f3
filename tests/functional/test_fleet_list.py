"""Workers are found by their list in Redis, whatever else it holds, also after some have died."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from helpers.runs import Cluster, site
from osbench.common.errors import FleetError
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat, Offer
from osbench.common.protocol.redis_client import Client, connect
from osbench.common.protocol.wire import Wire
from osbench.coordinator.load.fleet.heartbeats import OTHER_VERSION, HeartbeatReader
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.load.fleet.pool import WorkerPool
from osbench.coordinator.load.fleet.worker_request import WorkerRequest
from servers import RedisServer, redis_server


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as found:
        yield found


@pytest.fixture
def client(server: RedisServer) -> Iterator[Client]:
    """A client of an empty Redis."""
    with connect(server.url, timeout_s=5.0) as found:
        found.flushall()
        yield found


class NoPort:
    """Of the rest of a run there is nothing but the offers."""

    def __init__(self) -> None:
        self.offered: list[Offer] = []

    def join(self, mid: str, incarnation: str) -> Membership:
        raise AssertionError("nobody has followed an offer")

    def offer(self, offers: Iterable[Offer]) -> None:
        self.offered += offers

    def forget(self, incarnation: str) -> None:
        raise AssertionError("nobody has gone")


def beat(client: Client, signer: Signer, name: str, **fields: Any) -> None:
    said = heartbeat(name, **{"state": "idle", **fields})
    client.set(
        redis_keys.worker(name),
        signer.sign(Heartbeat.KIND, said.body()),
        ex=redis_keys.WORKER_TTL_S,
    )
    client.sadd(redis_keys.WORKERS, name)


def test_who_is_listed_and_heard_is_there_and_who_is_not_heard_leaves_the_list(client):
    signer = Signer(Keyring.generate())
    beat(client, signer, "h.1.a")
    beat(client, signer, "h.2.b", state="running", run="r1")
    beat(client, signer, "h.3.c")
    client.delete(redis_keys.worker("h.3.c"))
    heartbeats = HeartbeatReader(client, signer)

    present = heartbeats.present()

    assert [(one.incarnation, one.run) for one in present] == [("h.1.a", ""), ("h.2.b", "r1")]
    assert heartbeats.unverified == heartbeats.refused == 0
    assert client.smembers(redis_keys.WORKERS) == {b"h.1.a", b"h.2.b"}


@pytest.mark.parametrize("found", ["nothing", "a list"])
def test_who_was_heard_is_there_though_the_list_is_gone(client, found):
    signer = Signer(Keyring.generate())
    beat(client, signer, "h.1.a")
    heartbeats = HeartbeatReader(client, signer)
    heartbeats.present()
    client.delete(redis_keys.WORKERS)
    if found == "a list":
        client.rpush(redis_keys.WORKERS, "junk")

    present = heartbeats.present(), heartbeats.present(relist=False), heartbeats.present()

    assert [[one.incarnation for one in beats] for beats in present] == [["h.1.a"]] * 3
    client.delete(redis_keys.worker("h.1.a"))
    assert heartbeats.present() == []


def test_who_signs_with_another_key_is_counted_and_stays_on_the_list(client):
    beat(client, Signer(Keyring.generate()), "h.1.a")
    heartbeats = HeartbeatReader(client, Signer(Keyring.generate()))

    assert heartbeats.present() == []

    assert heartbeats.unverified == 1
    assert client.smembers(redis_keys.WORKERS) == {b"h.1.a"}


def test_who_has_another_version_is_told_from_who_has_another_key(client):
    signer = Signer(Keyring.generate())
    beat(client, signer, "h.1.a", version="0.0.1", run="r")
    other = heartbeat("h.2.b", version="99.0.0").body() | {"fields": "of a later version"}
    client.set(redis_keys.worker("h.2.b"), signer.sign(Heartbeat.KIND, other))
    client.sadd(redis_keys.WORKERS, "h.2.b")
    heartbeats = HeartbeatReader(client, signer)

    present = heartbeats.present()

    assert [(one.version, one.state, one.run, one.host) for one in present] == [
        ("0.0.1", OTHER_VERSION, "", "h"),
        ("99.0.0", OTHER_VERSION, "", "h"),
    ]
    assert heartbeats.unverified == 0


def test_a_worker_that_leaves_takes_its_name_off_the_list(client):
    beat(client, Signer(Keyring.generate()), "h.1.a")

    Wire(client).forget("h.1.a")

    assert client.keys() == []


def test_looking_for_workers_costs_a_few_commands_however_many_keys_there_are(client):
    signer = Signer(Keyring.generate())
    client.mset({f"osprofiler:{number}": "x" for number in range(5000)})
    beat(client, signer, "h.1.a")
    client.config_resetstat()

    HeartbeatReader(client, signer).present()

    calls = {name: one["calls"] for name, one in client.info("commandstats").items()}
    assert calls.get("cmdstat_scan", 0) == calls.get("cmdstat_keys", 0) == 0
    # one worker is listed, and read
    assert calls["cmdstat_getrange"] == 1


def test_an_empty_list_has_no_heads(server: RedisServer, client: Client) -> None:
    with site() as here:
        Cluster(here, server)

        done = here.call("workers")

    assert (done.code, done.out) == (0, "")
    assert "no workers; start some with osbench-worker" in done.err


#: For workers: they join late where a file says so, that is after they have read the offer.
LATE = """
import pathlib
import time

from osbench.worker.process import agent

LATE = pathlib.Path(__file__).parent / "late"
joined = agent.Agent._join


def join(self, offer):
    while LATE.exists():
        time.sleep(0.05)
    joined(self, offer)


agent.Agent._join = join
"""


@pytest.mark.functional
def test_who_follows_an_offer_of_a_run_that_is_over_is_free_at_once() -> None:
    with redis_server(password="functional") as redis, site() as here:
        plugins = here.home / "late-workers"
        plugins.mkdir()
        (plugins / "plugins.py").write_text(LATE)
        cluster = Cluster(here, redis)
        here.configure(cluster.messaging, {"DEFAULT": {"log_level": "INFO"}})
        cluster.start_worker()
        late = cluster.start_worker("--plugin-path", str(plugins))
        cluster.await_idle(2)
        (plugins / "late").touch()

        done = here.run("--scenario", "Dummy.dummy", "--times", "4")
        assert done.code == 0, done.err
        (plugins / "late").unlink()
        late.await_said(f"left run {done.printed['run_id']}")
        cluster.await_idle(2)
        # it did not wait for a coordinator
        assert "was not heard" not in late.said()


def test_no_user_is_asked_to_start_workers_that_local_mode_starts(client):
    signer = Signer(Keyring.generate())
    beat(client, signer, "h.1.a")
    said: list[str] = []
    port = NoPort()

    with pytest.raises(FleetError) as raised:
        WorkerPool(port, HeartbeatReader(client, signer), "r").gather(
            WorkerRequest(count=3, least=1, threads=1, coroutines=0, wait_s=0.0, private=True),
            lambda: None,
            said.append,
        )

    assert str(raised.value) == (
        "0 of the 3 worker processes that local mode starts came within 0 s: give them longer "
        "with --wait-for-workers, or start fewer with --workers"
    )
    assert [one.incarnation for one in port.offered] == ["h.1.a"]
    assert said == []
