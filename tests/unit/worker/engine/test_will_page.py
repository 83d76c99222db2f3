"""What stands on the page of a process that was killed covers all that it started."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers.engines import arrivals, batch, until
from helpers.import_path import TESTS, import_path
from helpers.will_writer import batches
from osbench.common.protocol.messages import Will
from osbench.common.values.intervals import Intervals
from osbench.worker.engine.will_page import WillPage

MID = "a" * 32


@pytest.fixture
def page():
    found = WillPage.create()
    yield found
    found.close()


@pytest.fixture
def ours(page):
    """The same page as the worker process maps it."""
    found = WillPage(os.dup(page.fd), "host.1.aa")
    yield found
    found.close()


def will(**more) -> Will:
    return Will(run="run-1", incarnation="host.1.aa", membership=MID, **more)


def test_a_process_in_no_run_leaves_no_will(page, ours):
    before = page.read()
    ours.join("run-1", MID)
    ours.serve(0, False)
    ours.leave()

    assert before is None
    assert page.read() is None


def test_before_its_first_workload_a_membership_has_started_nothing(page, ours):
    ours.join("run-1", MID)

    assert page.read() == will(workload=-1)


def test_a_closed_load_that_has_not_begun_has_started_nothing(page, ours):
    ours.join("run-1", MID)
    ours.serve(2, False)

    assert page.read() == will(workload=2)


def test_the_mark_follows_the_batch_that_was_taken_last(page, ours):
    ours.join("run-1", MID)
    ours.serve(0, False)
    ours.reach(1, 500)
    first = page.read()
    ours.reach(2, 20)
    second = page.read()
    # put back before, so that it comes after numbers of a later batch
    ours.reach(1, 499)
    ours.reach(2, 15)

    assert first == will(workload=0, seq=1, number=500)
    assert second == will(workload=0, seq=2, number=20)
    assert page.read() == will(workload=0, seq=2, number=499)


def test_the_batches_of_an_earlier_workload_count_as_taken(page, ours):
    ours.join("run-1", MID)
    ours.serve(0, False)
    ours.reach(4, 10)
    ours.serve(1, False)

    found = page.read()
    assert (found.workload, found.seq) == (1, 4)
    assert found.number >= 1 << 61


def test_an_open_load_tells_the_latest_arrival_that_was_taken(page, ours):
    ours.join("run-1", MID)
    ours.serve(0, True)
    before = page.read()
    ours.take(700, 2)
    ours.take(300, 1)
    # the same workload again, after its coordinator was replaced
    ours.serve(0, True)

    assert (before.due_ns, before.seq) == (-1, 0)
    assert (page.read().due_ns, page.read().seq) == (700, 2)


def test_joining_again_forgets_nothing_and_another_membership_begins_anew(page, ours):
    ours.join("run-1", MID)
    ours.serve(0, False)
    ours.reach(4, 10)
    ours.join("run-1", MID)
    same = page.read()
    ours.join("run-1", "b" * 32)

    assert (same.seq, same.number) == (4, 10)
    assert page.read().membership == "b" * 32
    assert (page.read().workload, page.read().seq) == (-1, 0)


def test_names_that_the_page_has_no_room_for_leave_no_will(page, ours):
    ours.join("r" * 2000, MID)

    assert page.read() is None


def test_an_engine_covers_what_it_starts_and_not_what_waits(closed, page, ours):
    ours.join("run-1", MID)
    ours.serve(0, False)
    seen = []
    with closed(lambda scenario: seen.append(page.read()), page=ours) as engine:
        engine.add(batch((10, 12), number=1))
        engine.add(batch((3, 5), number=2))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 4)
        engine.set_user_limit(0)
        engine.add(batch((100, 200), number=3))

    assert [one.seq for one in seen] == [1, 1, 2, 2]
    assert all(one.number >= n for one, n in zip(seen, (10, 11, 3, 4), strict=True))
    assert (page.read().seq, page.read().number) == (2, 4)


def test_an_open_engine_covers_the_arrivals_that_it_starts(opened, page, ours):
    ours.join("run-1", MID)
    ours.serve(0, True)
    with opened(t0_in_ns=0, max_lag_ns=10**12, page=ours) as engine:
        engine.add(arrivals([1000, 2000, 3_600_000_000_000]))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 2)

    assert page.read() == will(workload=0, seq=1, number=(1 << 62) - 1, due_ns=2000)


def uncovered(found: Will, started: set[int], granted: list) -> set[int]:
    """The started numbers that a will says were not started."""
    wrong = set()
    for one in granted:
        numbers = Intervals(one.intervals).members().tolist()
        if found.due_ns is not None:
            dues = np.frombuffer(one.dues, "<i8").tolist()
            free = {n for n, due in zip(numbers, dues, strict=True) if due > found.due_ns}
        elif one.seq == found.seq:
            free = {n for n in numbers if n > found.number}
        else:
            free = set(numbers) if one.seq > found.seq else set()
        wrong |= free & started
    return wrong


@pytest.fixture(scope="module")
def writers():
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.will_writer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | import_path(TESTS),
    )
    with process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("kind", ["closed", "open"])
@pytest.mark.parametrize("seed", range(6))
def test_a_process_killed_at_any_moment_has_started_nothing_that_its_will_denies(
    page, tmp_path, writers, kind, seed, users
):
    log = tmp_path / "log"
    request = os.getpid(), page.fd, str(log), seed, kind, users
    print(json.dumps(request), file=writers.stdin, flush=True)
    child = int(writers.stdout.readline())
    try:
        until(lambda: log.exists() and log.stat().st_size)
        time.sleep(random.Random(seed).random() * 0.2)
    finally:
        os.kill(child, signal.SIGKILL)
        assert writers.stdout.readline() == "ended\n"

    data = log.read_bytes()
    started = set(struct.unpack(f"<{len(data) // 8}q", data))
    found = page.read()
    assert found is not None
    assert (found.run, found.membership, found.workload) == ("run-1", MID, 3)
    assert uncovered(found, started, batches(seed, kind)) == set()
