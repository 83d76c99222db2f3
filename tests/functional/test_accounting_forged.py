"""Someone without a key writes to Redis: runs hang not, lie not, and execute nothing of it."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.arena import Arena, Load, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

TIMES = 1000
#: About five seconds on two hosts.
CLOSED = {"constant": {"times": TIMES, "concurrency": 6}}


@pytest.fixture
def pair() -> Iterator[Arena]:
    with arena() as found:
        found.start_hosts(2)
        yield found


@pytest.fixture(scope="module")
def attacked() -> Iterator[Arena]:
    """Two hosts that outlive one attack after the other."""
    with arena() as found:
        found.start_hosts(2)
        yield found


def delete_an_entry(found: Arena, load: Load) -> None:
    assert wait_until(found.attacker.delete_results)


def reorder_entries(found: Arena, load: Load) -> None:
    # entries of several blocks lie there while nobody reads them
    for _ in range(3):
        load.signal(signal.SIGSTOP)
        time.sleep(1.0)
        found.attacker.reorder_results()
        load.signal(signal.SIGCONT)
        time.sleep(0.2)


def delete_part(part: str) -> Callable[[Arena, Load], None]:
    def delete(found: Arena, load: Load) -> None:
        with contextlib.closing(found.fragile.client()) as client:
            client.delete(f"osbench:run:{load.run}:{part}")

    delete.__name__ = f"delete_{part}"
    return delete


def change_boot(found: Arena, load: Load) -> None:
    with contextlib.closing(found.fragile.client()) as client:
        client.hset(f"osbench:run:{load.run}:head", "boot", "another")


def claim_for_a_stranger(found: Arena, load: Load) -> None:
    with contextlib.closing(found.fragile.client()) as client:
        for batch in range(1, 200):
            client.hsetnx(f"osbench:run:{load.run}:claims", str(batch), "stranger")


def flush(found: Arena, load: Load) -> None:
    found.fragile.flush()


def close_stream(found: Arena, load: Load) -> None:
    found.attacker.close_streams()


def change_types(found: Arena, load: Load) -> None:
    found.attacker.change_types(1.0)


def replay(found: Arena, load: Load) -> None:
    for _ in range(20):
        found.attacker.replay(50)
        time.sleep(0.1)


@pytest.mark.parametrize(
    "attack",
    [
        delete_an_entry,
        reorder_entries,
        delete_part("results"),
        delete_part("head"),
        delete_part("specs"),
        change_boot,
        claim_for_a_stranger,
        flush,
        close_stream,
        change_types,
        replay,
    ],
    ids=lambda one: one.__name__,
)
def test_a_run_ends_by_itself_and_does_not_lie(
    attacked: Arena, attack: Callable[[Arena, Load], None]
) -> None:
    load = attacked.start_load(CLOSED)
    attacked.await_started(load, 50)

    attack(attacked, load)

    code = attacked.finish(load)
    sums = attacked.exact(load)
    assert sums["lost"] == 0, (code, sums)
    assert wait_until(attacked.are_free)


def test_what_may_have_started_is_not_told_as_not_started(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 50)

    pair.fragile.flush()
    time.sleep(2)
    load.interrupt()

    assert pair.finish(load) == 130
    pair.exact(load)


def refused(found: Arena) -> int:
    """Messages that the workers say they have refused."""
    listed: list[dict[str, Any]] = json.loads(found.site.coord("workers", "--json").out)
    return sum(count for one in listed for count in one["refusals"].values())


def test_records_of_a_finished_run_are_refused(pair: Arena) -> None:
    runner = {"constant": {"times": 40, "concurrency": 4}}
    first = pair.start_load(runner, tag="first")
    assert pair.finish(first) == 0
    second = pair.start_load(runner, tag="second")
    assert pair.finish(second) == 0
    assert wait_until(pair.are_free)
    attacker = pair.attacker

    for _ in range(2):
        before = refused(pair)
        attacker.replay_all(within_s=8.0)
        # what the workers say of it comes with their heartbeats
        assert wait_until(lambda before=before: refused(pair) > before)

    for load in (first, second):
        starts = pair.seen(load).starts
        assert (len(starts), starts.total()) == (40, 40)
    # and the next run is not disturbed
    third = pair.start_load(runner, "--wait-for-workers", "90", tag="third")
    assert pair.finish(third) == 0, third.command.said()
    assert pair.exact(third)["ok"] == 40


def test_specifications_of_another_run_are_refused_and_named(pair: Arena) -> None:
    first = pair.start_load(
        {"constant": {"times": 30, "concurrency": 4}}, "--workers", "1", tag="first", answer_ms=900
    )
    foreign: dict[Any, Any] = {}

    def has_specification() -> bool:
        with contextlib.closing(pair.fragile.client()) as client:
            foreign.update(client.hgetall(f"osbench:run:{first.run}:specs"))
        return bool(foreign)

    assert wait_until(has_specification)
    ended = threading.Event()

    def swap() -> None:
        own = f"osbench:run:{first.run}:specs".encode()
        with contextlib.closing(pair.fragile.client()) as client:
            while not ended.is_set():
                for key in client.scan_iter("osbench:run:*:specs"):
                    if key != own:
                        client.hset(key, mapping=foreign)

    attack = threading.Thread(target=swap)
    attack.start()
    try:
        dummies = {
            "scenario": {"Dummy.dummy": {"sleep": 0.01}},
            "runner": {"constant": {"times": 30, "concurrency": 4}},
        }
        # a busy machine may not get to it before the worker has its own specification
        for number in range(5):
            second = pair.start_run([dummies], "--workers", "1", tags=[f"dummy-{number}"])
            if not number:
                pair.finish(first)
            if (
                wait_until(
                    lambda run=second: "specification" in run.command.said() or not run.is_running
                )
                and "specification" in second.command.said()
            ):
                break
            pair.finish(second)
    finally:
        ended.set()
        attack.join()

    code = pair.finish(second)
    assert pair.exact(first)["ok"] == 30
    assert pair.log.seen().total() == 30, "the second run has sent the first one's requests"
    shown = second.command.said() + json.dumps(pair.summary(second))
    assert code in (0, 3)
    assert "specification" in shown
