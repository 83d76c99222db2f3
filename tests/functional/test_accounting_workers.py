"""Workers that die, or wait for a name server: what that costs, and what it does not."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from helpers.arena import SLOW_NAME, Arena, Load, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

RATE = 200
SECONDS = 20
OPEN = {"rps": {"rps": RATE, "times": RATE * SECONDS}}


@pytest.fixture
def found() -> Iterator[Arena]:
    with arena() as made:
        yield made


def killed_at(found: Arena, load: Load, seconds: float) -> float:
    """Kill a worker process so long after the first request; the instant."""
    found.await_started(load)
    begun = min(line.at for line in found.log.lines() if line.run == load.run)
    time.sleep(max(0.0, begun + seconds - time.monotonic()))
    found.hosts[0].signal_process(signal.SIGKILL)
    return time.monotonic()


@pytest.mark.timing
def test_a_killed_worker_costs_an_open_load_little_on_an_idle_machine(found: Arena) -> None:
    found.start_hosts(2)
    load = found.start_load(OPEN)

    killed = killed_at(found, load, 8.0)

    code = found.finish(load)
    sums = found.exact(load)
    assert code == (3 if sums["lost"] or sums["dropped"] else 0)
    # what ran when it was killed, at 20 ms each about two, and what had not been shipped for 0.2 s
    assert sums["lost"] <= 60, sums
    assert sums["dropped"] <= RATE, sums
    assert sums["not_started"] == 0
    # the rate is back: with three seconds that are promised, and some for a busy machine
    starts = [line.at for line in found.log.lines() if line.run == load.run and not line.answered]
    end = min(starts) + SECONDS
    late = [at for at in starts if killed + 6 <= at <= end]
    assert len(late) >= 0.8 * RATE * (end - killed - 6)


def test_an_idempotent_open_load_loses_nothing(found: Arena) -> None:
    found.start_hosts(2)
    load = found.start_load(OPEN, idempotent=True)

    killed_at(found, load, 4.0)

    code = found.finish(load)
    sums = found.exact(load)
    assert (code, sums["ok"]) == (0, RATE * SECONDS), sums


def test_idempotent_arrivals_that_are_too_late_are_dropped_not_lost(found: Arena) -> None:
    found.configured(benchmark={"max_lag_s": 1})
    found.start_hosts(2)
    load = found.start_load(OPEN, idempotent=True)

    killed_at(found, load, 4.0)

    found.finish(load)
    sums = found.exact(load)
    assert sums["lost"] == sums["not_started"] == 0, sums
    assert sums["ok"] + sums["dropped"] == RATE * SECONDS


#: For workers: what the broker delivers does not reach them.
NOTHING_ARRIVES = """
from osbench.worker.process import agent

agent.Agent.receive = lambda self, data: None
"""


@pytest.mark.parametrize("others", [0, 1])
def test_a_worker_that_takes_no_batches_holds_nothing_up(found: Arena, others: int) -> None:
    plugins = found.site.home / "nothing-arrives"
    plugins.mkdir()
    (plugins / "plugins.py").write_text(NOTHING_ARRIVES)
    found.start_host("--plugin-path", str(plugins))
    for _ in range(others):
        found.start_host()
    found.configured(coordinator={"wait_for_workers_s": 5})

    load = found.start_load({"constant": {"times": 3000, "concurrency": 4}})

    code = found.finish(load)
    sums = found.exact(load)
    assert (code, sums["ok"]) == ((0, 3000) if others else (3, 0)), sums
    assert sums["lost"] == 0
    if not others:
        # with another one, that has done it all before
        assert any("took none of its batches" in note for note in found.summary(load)["notes"])


def test_a_slow_name_server_silences_nobody(found: Arena) -> None:
    slow = found.start_host(address=SLOW_NAME)
    found.start_host()
    found.await_free()
    load = found.start_load({"constant": {"times": 3000, "concurrency": 4}})
    found.await_started(load, 50)

    slow.slow_names.touch()
    slow.proxy.cut(0.0)

    code = found.finish(load)
    sums = found.exact(load)
    assert (code, sums["ok"]) == (0, 3000), (sums, load.command.said())
    summary = found.summary(load)
    assert not [one for one in summary["workloads"][0]["workers"] if one["lost"]]
    assert not [note for note in summary["notes"] if "silent" in note]
    slow.slow_names.unlink()
    assert wait_until(found.are_free)
