"""The sleep before an arrival: never short, and awake no longer than the budget allows."""

from __future__ import annotations

import os
import time
from pathlib import Path
from time import monotonic_ns

import pytest

from helpers.engines import Cores, until
from osbench.worker.engine.precise_sleep import (
    AHEAD_NS,
    MEASURE_NS,
    SAVED_NS,
    IdleCores,
    PreciseSleep,
)

MS = 1_000_000


def slept(sleep: PreciseSleep, *, times: int = 20, wait_ns: int = MS) -> list[int]:
    """Sleeps so many times; by how many nanoseconds each ended after its instant."""
    late = []
    for _ in range(times):
        due = monotonic_ns() + wait_ns
        sleep.until(due)
        late.append(monotonic_ns() - due)
    return late


@pytest.mark.parametrize("idle", [None, 0.0, 2.0])
def test_no_sleep_ends_before_its_instant(idle: float | None) -> None:
    sleep = PreciseSleep(1.0, Cores(idle))
    sleep.look(monotonic_ns())

    assert min(slept(sleep, wait_ns=2 * AHEAD_NS)) >= 0
    assert min(slept(sleep, wait_ns=AHEAD_NS // 2)) >= 0
    assert min(slept(sleep, wait_ns=-MS)) >= MS


def test_the_thread_is_awake_before_the_instant_while_a_core_is_idle() -> None:
    sleep = PreciseSleep(1.0, Cores(1.0))
    sleep.look(monotonic_ns())
    time.sleep(0.01)

    # on a busy machine a thread may wake too late to be awake before any of some instants
    until(lambda: slept(sleep) and sleep.awake_ns > 0)

    assert sleep.awake_ns > 0


@pytest.mark.parametrize("idle", [None, 0.2])
def test_it_sleeps_to_the_instant_where_no_core_is_known_to_be_idle(idle: float | None) -> None:
    sleep = PreciseSleep(1.0, Cores(idle))
    sleep.look(monotonic_ns())
    time.sleep(0.01)

    slept(sleep)

    assert sleep.awake_ns == 0


def test_a_core_that_is_busy_again_ends_it() -> None:
    cores = Cores(1.0)
    sleep = PreciseSleep(1.0, cores)
    now = monotonic_ns()
    sleep.look(now)
    cores.idle = 0.0
    sleep.look(now + MEASURE_NS)
    time.sleep(0.01)

    slept(sleep)

    assert sleep.awake_ns == 0
    assert cores.asked == 2


def test_idle_cores_are_not_measured_at_every_look() -> None:
    cores = Cores(1.0)
    sleep = PreciseSleep(1.0, cores)
    now = monotonic_ns()

    for at in range(0, MEASURE_NS, MEASURE_NS // 10):
        sleep.look(now + at)

    assert cores.asked == 1


def test_idle_cores_are_not_measured_without_a_budget() -> None:
    cores = Cores(1.0)

    PreciseSleep(0.0, cores).look(monotonic_ns())

    assert cores.asked == 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The instant that a sleep sees: a turn of its loop takes a microsecond."""
    now = [monotonic_ns()]
    module = "osbench.worker.engine.precise_sleep"

    def sleep_s(seconds: float) -> None:
        now[0] += int(seconds * 1e9) or 1_000

    monkeypatch.setattr(f"{module}.monotonic_ns", lambda: now[0])
    monkeypatch.setattr(f"{module}.time.sleep", sleep_s)
    return now


@pytest.mark.parametrize("budget", [0.0, 0.05, 0.5])
def test_it_is_awake_no_longer_than_the_budget(clock: list[int], budget: float) -> None:
    begun = clock[0]
    sleep = PreciseSleep(budget, Cores(2.0))
    sleep.look(clock[0])

    for _ in range(10_000):
        sleep.until(clock[0] + AHEAD_NS)

    assert clock[0] - begun == pytest.approx(10_000 * AHEAD_NS, rel=0.01)
    assert sleep.awake_ns == pytest.approx(budget * (clock[0] - begun), rel=0.01)


def test_an_unused_budget_is_saved_for_a_second_at_most(clock: list[int]) -> None:
    sleep = PreciseSleep(0.1, Cores(2.0))
    sleep.look(clock[0])
    clock[0] += 3600 * SAVED_NS

    begun = clock[0]
    for _ in range(10_000):
        sleep.until(clock[0] + AHEAD_NS)

    spent_ns = 0.1 * (SAVED_NS + clock[0] - begun)
    assert sleep.awake_ns == pytest.approx(spent_ns, rel=0.01)


def test_a_thread_that_was_not_run_while_awake_pays_for_it_later(clock: list[int]) -> None:
    sleep = PreciseSleep(0.1, Cores(2.0))
    sleep.look(clock[0])
    clock[0] += SAVED_NS
    sleep._stay_awake(clock[0] + SAVED_NS)

    sleep.until(clock[0] + AHEAD_NS)

    # in debt
    assert sleep.awake_ns == pytest.approx(SAVED_NS, rel=0.01)


def stat(folder: Path, *idle: int) -> Path:
    """A /proc/stat in which cores have been idle for so many ticks, half of them for a disk."""
    lines = ["cpu  9 9 9 9 9 9 9 9 9 9"]
    lines += [
        f"cpu{core} 1 2 3 {ticks // 2} {ticks - ticks // 2} 6 7 8 0 0"
        for core, ticks in enumerate(idle)
    ]
    path = folder / "stat"
    path.write_text("\n".join([*lines, "intr 1 2 3", "ctxt 4"]) + "\n")
    return path


def test_idle_time_of_the_cores_that_this_process_has_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 2})
    cores = IdleCores(stat(tmp_path, 100, 100, 100))

    first = cores.measure(5.0)
    stat(tmp_path, 100 + 2 * second, 100 + 2 * second, 100 + second)
    then = cores.measure(7.0)

    assert first is None
    assert then == pytest.approx(1.5)


def test_nothing_is_known_of_no_time_at_all(tmp_path: Path) -> None:
    cores = IdleCores(stat(tmp_path, *[100] * (max(os.sched_getaffinity(0)) + 1)))

    assert [cores.measure(5.0), cores.measure(5.0), cores.measure(6.0)] == [None, None, 0.0]


@pytest.mark.parametrize("text", ["", "cpu 1 2", "cpu0 a b c d e", None])
def test_where_the_kernel_does_not_tell_nothing_is_known(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "stat"
    if text is not None:
        path.write_text(text)
    cores = IdleCores(path)

    assert cores.measure(1.0) is None
    assert cores.measure(2.0) is None


def test_this_machine_tells_of_its_cores() -> None:
    cores = IdleCores()
    cores.measure(time.monotonic())
    time.sleep(0.05)

    idle = cores.measure(time.monotonic())

    assert idle is not None
    assert idle >= 0.0
