"""A Redis that loses what it had: the run goes on, and every iteration is accounted for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from helpers.arena import Arena, Load, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

TIMES = 2000
#: About eight seconds on two hosts.
CLOSED = {"constant": {"times": TIMES, "concurrency": 6}}


@pytest.fixture
def pair() -> Iterator[Arena]:
    with arena() as found:
        found.start_hosts(2)
        yield found


def is_exact(found: Arena, load: Load) -> None:
    """The run goes on and ends as if nothing had happened."""
    code = found.finish(load)
    sums = found.exact(load)
    assert (code, sums["ok"]) == (0, TIMES), (sums, load.command.said())
    assert wait_until(found.are_free)


def is_told(found: Arena, load: Load) -> bool:
    """Whether a note of the report says that Redis has gone back to an older state."""
    return any("Redis" in note for note in found.summary(load).get("notes", ()))


def turn_of(found: Arena) -> int:
    """What the coordinator of the only run has counted in Redis."""
    with contextlib.closing(found.fragile.client()) as client:
        (key,) = client.scan_iter("*:turns")
        return int(client.get(key))


def test_redis_that_was_killed_and_has_its_file_costs_nothing(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 100)

    pair.fragile.kill()
    time.sleep(3)
    pair.fragile.begin_again()

    is_exact(pair, load)


@pytest.mark.parametrize("after_s", [0.5, 2.5])
def test_redis_without_the_last_second_of_its_file_is_noticed(pair: Arena, after_s: float) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 50)
    time.sleep(after_s)
    copy, turn = pair.fragile.copied(), turn_of(pair)
    time.sleep(1)
    # on a busy machine the coordinator may have written nothing in that second
    assert wait_until(lambda: turn_of(pair) > turn)

    pair.fragile.begin_again(copy)

    is_exact(pair, load)
    assert is_told(pair, load)


@pytest.mark.parametrize("after_s", [0.5, 2.5])
def test_a_replica_that_lags_behind_is_noticed(pair: Arena, after_s: float) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 50)
    time.sleep(after_s)
    copy, turn = pair.fragile.copied(), turn_of(pair)
    time.sleep(1.5)
    assert wait_until(lambda: turn_of(pair) > turn)

    pair.fail_over(copy)

    is_exact(pair, load)
    assert is_told(pair, load)


def test_redis_that_comes_back_empty_costs_nothing(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 100)

    pair.fragile.begin_empty()

    is_exact(pair, load)


def test_redis_that_dies_at_the_end_of_a_run_and_comes_back_empty_frees_the_workers(
    pair: Arena,
) -> None:
    load = pair.start_load({"constant": {"times": 60, "concurrency": 6}})
    journal = pair.site.data / "runs" / load.run / "journal"
    assert wait_until(lambda: b"close" in journal.read_bytes())

    pair.fragile.kill()
    time.sleep(3)
    pair.fragile.begin_empty()

    code = pair.finish(load)
    sums = pair.exact(load)
    assert (code, sums["ok"]) == (0, 60), (sums, load.command.said())
    assert wait_until(pair.are_free)
    for host in pair.hosts:
        # they were told of the end, and delivered all
        assert "was not heard" not in host.supervisor.said()
        host.supervisor.process.terminate()
        assert host.supervisor.process.wait(60) == 0
        assert "did not confirm" not in host.supervisor.said()


def test_redis_that_is_out_of_memory_for_a_while_costs_nothing(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 100)

    pair.fragile.fill()
    time.sleep(4)
    pair.fragile.free()

    is_exact(pair, load)


def test_redis_that_stands_still_for_a_while_costs_nothing(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 100)

    pair.fragile.pause()
    time.sleep(8)
    pair.fragile.resume()

    is_exact(pair, load)


def test_a_heartbeat_and_claims_that_are_deleted_start_nothing_twice(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 50)
    ended = threading.Event()

    def delete() -> None:
        with contextlib.closing(pair.fragile.client()) as client:
            keys = sorted(client.scan_iter("osbench:worker:*"))
            while not ended.is_set():
                claims = list(client.scan_iter("osbench:run:*:claims"))
                client.delete(keys[0], *claims)
                time.sleep(0.005)

    attack = threading.Thread(target=delete)
    attack.start()
    time.sleep(4.5)
    ended.set()
    attack.join()

    is_exact(pair, load)
