"""A supervisor tells the run what its dead worker process cannot have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.engines import until
from osbench.common.config.config import load
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Control, Will
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.store import RedisStore
from osbench.worker.process.will_sender import WillSender

pytestmark = pytest.mark.functional

TESTS = Path(__file__).parents[1]
MID = "b" * 32
WILL = Will(run="run-1", incarnation="host.1.aa", membership=MID, workload=0, seq=2, number=9)


class Site:
    """A configuration with keys, and the results of one run in Redis."""

    def __init__(self, folder: Path, redis) -> None:
        self.file = folder / "osbench.conf"
        self.file.write_text(
            f"[DEFAULT]\ndata_dir = {folder}\n"
            f"[messaging]\nredis_url = {redis.url}\nredis_timeout_s = 1\n",
            encoding="utf-8",
        )
        self.ring = Keyring.generate()
        self.ring.save(folder / "keys")
        self.conf = load([str(self.file)])
        self._client = connect(redis.url, 30.0)
        self.store = RedisStore(self._client, "run-1")
        self.store.tend()

    def close(self) -> None:
        self._client.close()

    def wills(self) -> list[Will]:
        """Those that stand in Redis now."""
        sealer = Sealer(Keyring.load(self.conf.security.key_file))
        found = self.store.read(0, 1000)
        return [Will.parse(sealer.open(Will.KIND, data)) for _, data in found]

    def forget(self) -> None:
        """Delete what stands in Redis."""
        self.store.delete([place for place, _ in self.store.read(0, 1000)])

    def answer(self, *, ring: Keyring | None = None, **changes) -> None:
        """Write a control record of the membership."""
        control = Control(
            **{
                "run": "run-1",
                "epoch": 1,
                "incarnation": WILL.incarnation,
                "session": MID,
                "membership": MID,
                "version": 9,
                **changes,
            }
        )
        sealed = Sealer(ring or self.ring).seal(Control.KIND, control.body())
        self.store.put_controls({MID: sealed})


@pytest.fixture
def here(tmp_path, redis) -> Iterator[Site]:
    found = Site(tmp_path, redis)
    yield found
    found.close()


@pytest.fixture
def sender(here) -> Iterator[WillSender]:
    found = WillSender(here.conf)
    yield found
    here.answer(over=True)
    until(lambda: not found._pending)


@pytest.fixture
def supervisor(here, tmp_path) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.supervised", str(here.file)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        cwd=tmp_path,
    )
    yield process
    process.terminate()
    assert process.wait(60) == 0


def pids(here: Site) -> list[int]:
    """The worker processes that were started so far."""
    file = here.file.with_name("pids")
    return [int(line) for line in file.read_text("utf-8").split()] if file.exists() else []


def of(pid: int) -> Will:
    """The will of a worker process."""
    return Will(
        run="run-1",
        incarnation=f"host.{pid}.aa",
        membership=f"{pid:032x}",
        workload=0,
        seq=3,
        number=7,
    )


def test_a_killed_process_leaves_a_will_and_one_that_has_left_its_run_does_not(here, supervisor):
    until(lambda: pids(here))
    (first,) = pids(here)
    os.kill(first, signal.SIGKILL)
    until(here.wills)
    until(lambda: len(pids(here)) == 2)
    supervisor.terminate()
    supervisor.wait(60)

    assert {will.incarnation for will in here.wills()} == {f"host.{first}.aa"}
    assert here.wills()[0] == of(first)


def test_a_process_is_replaced_while_redis_is_away_and_its_will_comes_later(
    here, supervisor, redis
):
    until(lambda: pids(here))
    (first,) = pids(here)
    redis.pause()
    try:
        os.kill(first, signal.SIGKILL)
        until(lambda: len(pids(here)) == 2)
    finally:
        redis.resume()
    until(here.wills)

    assert of(first) in here.wills()


def test_the_supervisor_sends_a_will_before_it_ends(here, supervisor):
    until(lambda: pids(here))
    (first,) = pids(here)
    # it cannot leave its run, and is killed at the end
    os.kill(first, signal.SIGSTOP)
    os.kill(supervisor.pid, signal.SIGTERM)
    os.kill(first, signal.SIGKILL)
    supervisor.wait(60)

    assert of(first) in here.wills()


def test_a_will_is_sent_again_until_the_run_is_over(here, sender):
    sender.send(WILL)
    until(here.wills)
    here.forget()
    until(here.wills)
    here.answer(over=True)
    until(lambda: not sender._pending)
    here.forget()
    time.sleep(2.5)

    assert here.wills() == []


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"over": True, "run": "run-2"},
        {"over": True, "membership": "c" * 32},
        {"over": True, "incarnation": "host.2.aa"},
        {"over": True, "ring": Keyring.generate()},
    ],
)
def test_a_record_that_does_not_end_the_run_for_it_changes_nothing(here, sender, record):
    here.answer(**record)
    sender.send(WILL)
    until(lambda: len(here.wills()) >= 2)

    assert set(map(repr, here.wills())) == {repr(WILL)}


def test_a_will_is_signed_with_the_key_of_the_moment(here, sender):
    sender.send(WILL)
    until(here.wills)
    here.ring = Keyring.generate()
    here.ring.save(here.conf.security.key_file)
    new = here.ring.keys[0].id

    until(lambda: any(new in data for _, data in here.store.read(0, 1000)))


def test_a_will_waits_for_the_results_of_its_run(here, sender):
    here.store.close()
    sender.send(WILL)
    time.sleep(0.5)
    here.store.tend()
    until(here.wills)

    assert here.wills()[0] == WILL
