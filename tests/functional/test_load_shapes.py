"""Load shapes as a service sees them: stages, Poisson arrivals, ramps, warm-up, and a stall."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from helpers.runs import Site, checked, site
from osbench.common.plugin.runner import Totals
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.stages import StagedRate
from servers import CountingServer, counting_server

pytestmark = pytest.mark.functional

BIN_S = 0.1
STAGES = [{"duration": 1, "target": 500}, {"duration": 3, "target": 500}]


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def request(server: CountingServer) -> dict[str, Any]:
    return {"HttpRequests.check_request": {"url": server.url, "method": "GET", "status_code": 200}}


def planned(runner: Any) -> np.ndarray:
    """Due instants of a runner's arrivals, in rounds of what it plans ahead."""
    found: list[float] = []
    for elapsed_s in range(0, 60, 5):
        totals = Totals(allotted=len(found), settled=0)
        found.extend(runner.step(float(elapsed_s), totals, [1]).arrivals)
    return np.array(found)


def per_bin(instants: np.ndarray, bins: int) -> np.ndarray:
    return np.bincount((instants / BIN_S).astype(int), minlength=bins)[:bins]


def until(attempts: int, outcome: Callable[[], float], wanted: float) -> float:
    """The best of some attempts: on a machine that others use, too, one may be disturbed."""
    best = 0.0
    for _ in range(attempts):
        best = max(best, outcome())
        if best >= wanted:
            break
    return best


@pytest.mark.timing
def test_stages_over_four_workers_follow_the_plan_on_an_idle_machine(here: Site) -> None:
    expected = per_bin(planned(StagedRate({"stages": STAGES})), 40)
    task = ""

    def share_as_planned() -> float:
        nonlocal task
        with counting_server() as server:
            task = here.task(
                {"scenario": request(server), "runner": {"stages": {"stages": STAGES}}}
            )
            done = here.run(task, "--workers", "4")
            rows = here.rows("last")
            instants = np.sort(np.array(server.instants))
        sums = done.sums
        assert sums["planned"] == sums["ok"] == 1750
        assert len(rows) == len(instants) == 1750
        # where t0 lies on the server's clock follows from the row that took least time to it
        starts = np.sort([float(row["started_s"]) for row in rows])
        seen = per_bin(instants - np.min(instants - starts), 40)
        begun = per_bin(starts, 40)
        near = [np.abs(bins - expected) <= np.maximum(1, 0.1 * expected) for bins in (seen, begun)]
        return float(np.mean(near))

    assert until(4, share_as_planned, 1.0) >= 0.95


def test_poisson_arrivals_are_those_of_the_seed(guest: Site, counting: CountingServer) -> None:
    config = {"times": 800, "rps": 400, "arrivals": "poisson", "seed": 5}

    done = guest.run(guest.task({"scenario": request(counting), "runner": {"rps": config}}))
    rows = guest.rows("last")

    assert done.sums["ok"] == 800
    assert set(counting.counts) == set(range(1, 801))
    assert set(counting.counts.values()) == {1}
    dues = np.sort([float(row["due_s"]) for row in rows])
    assert dues == pytest.approx(planned(Rps(config)), abs=2e-9)


@pytest.mark.timing
def test_users_are_added_over_the_ramp_on_an_idle_machine(here: Site) -> None:
    runner = {"constant_for_duration": {"duration": 3, "concurrency": 8, "ramp_up": 2}}
    task = here.task(
        {"scenario": {"Dummy.dummy": {"sleep": 0.02}}, "runner": runner, "warmup": 1.5}
    )

    done = here.run(task, "--workers", "2")
    rows = here.rows("last")

    (workload,) = done.result["workloads"]
    sums = checked(workload)
    starts = np.array([float(row["started_s"]) for row in rows])
    running = [
        sum(
            float(row["started_s"]) <= instant <= float(row["started_s"]) + float(row["service_s"])
            for row in rows
        )
        for instant in np.arange(0.01, 3, 0.01)
    ]
    assert max(running[:20]) <= 2
    assert max(running[:100]) <= 5
    assert max(running[200:]) == 8
    assert sums["ok"] == len(rows)
    cold = int((starts < 1.5).sum())
    assert workload["warmup"] == {"seconds": 1.5, "left_out": cold}
    assert workload["latency"]["service"]["ok"]["count"] == len(rows) - cold > 0
    assert workload["offered"]["concurrency_held"] > 0.9


# a stall

SERVICE_S, STALL_S, RATE, TIMES, USERS = 0.15, 5.0, 100, 3000, 26
PERCENTILES = (50, 90, 99)


def analytic(stall_at_s: float) -> dict[str, np.ndarray]:
    """Percentiles of a queue with as many servers as there are users.

    Arrivals are even and served in their order, each for the same time; what the service has in
    hand when it stalls, or takes on while it does, is answered after the stall.
    """
    free = [0.0] * USERS
    end_s = stall_at_s + STALL_S
    service, response = [], []
    for due_s in np.arange(TIMES) / RATE:
        started_s = max(due_s, heapq.heappop(free))
        ended_s = started_s + SERVICE_S
        if ended_s > stall_at_s and started_s < end_s:
            ended_s = max(ended_s, end_s)
        heapq.heappush(free, ended_s)
        service.append(ended_s - started_s)
        response.append(ended_s - due_s)
    return {
        "service": np.percentile(service, PERCENTILES),
        "response": np.percentile(response, PERCENTILES),
    }


def stall_once(server: CountingServer, after_s: float) -> None:
    while not server.instants:
        time.sleep(0.001)
    time.sleep(max(0.0, server.instants[0] + after_s - time.monotonic()))
    server.stall(STALL_S)


@pytest.mark.timing
@pytest.mark.timeout(600)
def test_a_stall_shows_in_response_time_as_theory_says_on_an_idle_machine(here: Site) -> None:
    here.configure({"benchmark": {"max_lag_s": 30, "lag_limit_s": 30}})
    runner = {"rps": {"times": TIMES, "rps": RATE, "max_concurrency": USERS}}
    theory = analytic(stall_at_s=8.0)
    measured: dict[str, np.ndarray] = {}

    def agreement() -> float:
        with counting_server(SERVICE_S) as server:
            stall = threading.Thread(target=stall_once, args=(server, 8.0))
            stall.start()
            done = here.run(
                here.task({"scenario": request(server), "runner": runner}), "--workers", "2"
            )
            stall.join()
        (workload,) = done.result["workloads"]
        assert checked(workload)["ok"] == TIMES
        for name in ("service", "response"):
            times = workload["latency"][name]["ok"]
            measured[name] = np.array([times[f"p{percent}"] for percent in PERCENTILES])
        errors = np.abs(measured["response"] / theory["response"] - 1)
        # a machine that others use may be late with an answer: 10 % of service time are allowed
        late = np.abs(measured["service"] / SERVICE_S - 1) / 5
        return 1.0 - float(max(errors.max(), late.max()))

    assert until(3, agreement, 0.98) >= 0.98, (measured, theory)
    # who looks at service time alone sees a service without trouble
    assert measured["service"] == pytest.approx([SERVICE_S] * 3, rel=0.1)
    assert theory["response"][2] > 25 * measured["service"][2]
