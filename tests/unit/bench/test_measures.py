from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.loads import load_of
from bench.taking_turns import Request, Side, median_interval, process_clock, ratios, take_turns
from helpers.json_server import LoopbackServer, QuietHandler, serving

positive = st.floats(min_value=1e-6, max_value=1e9)


class _Handler(QuietHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.log.append(self.server.name)
        self.answer(self.server.status, {})


class _Server(LoopbackServer):
    def __init__(self, name: str, log: list[str], status: int = 200) -> None:
        super().__init__(_Handler)
        self.name, self.log, self.status = name, log, status


def _request() -> Request:
    return "GET", "/", None, {}


def _side(server: _Server) -> Side:
    return Side(pid=os.getpid(), port=server.server_port, request=_request)


@pytest.fixture
def log() -> Iterator[list[str]]:
    yield []


def _iteration(timestamp: float, duration: float, action_s: float) -> dict[str, object]:
    action = {"name": "ask", "started_at": timestamp, "finished_at": timestamp + action_s}
    other = {"name": "other", "started_at": timestamp, "finished_at": timestamp + 100}
    return {
        "timestamp": timestamp,
        "duration": duration,
        "atomic_actions": [action, other],
    }


def test_a_load_lasts_from_its_first_start_to_its_last_end() -> None:
    workload = {"data": [_iteration(11.0, 1.0, 0.5), _iteration(10.0, 4.0, 0.25)]}

    found = load_of(workload, "ask", requests_at=[9.9, 10.0, 12.5, 14.0, 14.1])

    assert found.iterations == 2
    assert found.duration_s == 4.0
    assert found.requests == 3
    assert found.p50_ms == pytest.approx(250)
    assert found.p95_ms == pytest.approx(500)


def test_percentiles_of_an_action_are_among_its_durations() -> None:
    workload = {"data": [_iteration(float(n), 1.0, n / 1000) for n in range(1, 101)]}

    found = load_of(workload, "ask", requests_at=[])

    assert found.p50_ms == pytest.approx(50)
    assert found.p95_ms == pytest.approx(95)


@given(st.lists(positive, min_size=1, max_size=60))
def test_the_interval_of_a_median_holds_it_or_is_not_told(values: list[float]) -> None:
    bounds = median_interval(values)

    if bounds is None:
        assert len(values) < 10
    else:
        low, high = bounds
        ordered = sorted(values)
        assert low <= ordered[len(values) // 2] <= high
        assert low in values
        assert high in values


def test_more_values_bring_the_median_into_narrower_bounds() -> None:
    few, many = median_interval(range(100)), median_interval([n / 100 for n in range(10_000)])

    assert few is not None
    assert many is not None
    assert many[1] - many[0] < few[1] - few[0]


def test_ratios_are_those_of_the_same_turn() -> None:
    assert ratios([2.0, 9.0, 1.0], [1.0, 3.0, 0.0]) == [2.0, 3.0]


def test_the_clock_of_a_process_is_its_cpu_time() -> None:
    sum(range(100_000))
    before = time.process_time()

    found = time.clock_gettime(process_clock(os.getpid()))

    assert before <= found <= time.process_time()


def test_all_sides_are_asked_in_every_turn_and_begin_in_turn(log: list[str]) -> None:
    with serving(_Server("a", log)) as first, serving(_Server("b", log)) as second:
        sides = [_side(first), _side(second)]

        take_turns(sides, seconds=0.2, warm_up=1)

    turns = len(sides[0].cpu_ms)
    assert turns > 1
    assert log[:6] == ["a", "b", "a", "b", "b", "a"]
    assert log.count("a") == log.count("b") == turns + 1
    assert [len(side.latency_ms) for side in sides] == [turns, turns]
    assert all(spent > 0 for side in sides for spent in side.cpu_ms)


def test_an_answer_that_is_a_failure_is_not_measured(log: list[str]) -> None:
    with (
        serving(_Server("broken", log, status=503)) as server,
        pytest.raises(ConnectionError, match="503"),
    ):
        take_turns([_side(server)], seconds=0.2, warm_up=0)
