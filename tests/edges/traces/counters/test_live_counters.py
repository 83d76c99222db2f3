"""Counters that are read while a run runs, from a Prometheus that answers, or does not."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.fake_prometheus import FakePrometheus
from helpers.json_server import serving
from osbench.coordinator.results.accounting.counter_figures import CounterKind
from osbench.coordinator.results.accounting.load_span import LoadSpan
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters import counter_source, live_counters
from osbench.edges.traces.counters.counter_collection import CounterSettings
from osbench.edges.traces.counters.counter_file import COUNTERS, read_counters
from osbench.edges.traces.counters.counter_query import CounterQuery
from osbench.edges.traces.counters.counter_series import CounterSeries
from osbench.edges.traces.counters.counter_source import POINTS
from osbench.edges.traces.counters.live_counters import LiveCounters
from osbench.edges.traces.counters.prometheus import Prometheus
from servers.child import PATIENCE_S

CPU = CounterQuery(name="CPU", query="cpu[$window]", kind=CounterKind.SHARE, unit="share")
JOBS = CounterQuery(name="jobs", query="jobs", kind=CounterKind.QUEUE)


class Clock:
    """Redis time that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    # the server has the same clock, and answers at once
    monkeypatch.setattr(FakePrometheus, "now_s", lambda _: made.now)
    monkeypatch.setattr(counter_source, "time", SimpleNamespace(monotonic=lambda: 0.0))
    return made


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with serving(FakePrometheus()) as running:
        yield running


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    made = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    yield made
    made.close()


def settings_of(url: str, *queries: CounterQuery) -> CounterSettings:
    return CounterSettings(server=Prometheus(url), queries=queries or (CPU, JOBS))


def after(live: LiveCounters, clock: Clock, t0_at: float, elapsed_s: float, late_s: float) -> None:
    """Look again, `elapsed_s` after t0, at a load that ended `late_s` ago; 0: it goes on."""
    clock.now = t0_at + elapsed_s + late_s
    live.loads = {0: LoadSpan(t0_at=t0_at, elapsed_s=elapsed_s)}
    live.look()


def ranges(server: FakePrometheus, query: str = "") -> list[tuple[float, float]]:
    """Begin and end of the range queries."""
    return [
        (float(one["start"]), float(one["end"]))
        for one in server.asked
        if one["path"].endswith("query_range") and query in one["query"]
    ]


def only_series(directory: RunDirectory, number: int = 0) -> CounterSeries:
    (found,) = read_counters(directory)[number].series
    return found


def test_each_look_asks_for_the_new_part_and_all_is_on_the_axis(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    server.plant("cpu", lambda at: at - t0_at, instance="db1:9100")
    live = LiveCounters(directory, settings_of(server.url, CPU), clock)

    for elapsed_s in (20, 25, 30, 35, 40):
        after(live, clock, t0_at, elapsed_s, 0)

    values = only_series(directory).values
    assert len(values) == 41
    # a rate over 3 s belongs to the time around its middle; the newest are not known yet
    assert values[:39] == pytest.approx(np.arange(39) + 1.5, abs=0.1)
    assert [round(begin - t0_at - 1.5) for begin, _ in ranges(server)] == [0, 16, 21, 26, 31]
    assert max(end for _, end in ranges(server)) <= clock.now
    # clock and scrapes once, names of hosts once
    assert len(server.asked) - len(ranges(server)) == 3


def test_scrapes_that_come_late_leave_no_gap(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    for query in ("cpu", "jobs"):
        server.plant(
            query, lambda at: at - t0_at if at <= clock.now - 2 else None, instance="db1:9100"
        )
    live = LiveCounters(directory, settings_of(server.url), clock)

    for elapsed_s in (20, 25, 33.3, 40):
        after(live, clock, t0_at, elapsed_s, 0)
    after(live, clock, t0_at, 40, 6)

    for one in read_counters(directory)[0].series:
        assert len(one.values) == 41
        assert np.isfinite(one.values).all(), one.label


def test_a_load_that_has_ended_is_read_to_its_end_and_no_further(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    server.plant("jobs", lambda at: at - t0_at, instance="mq:1")
    live = LiveCounters(directory, settings_of(server.url, JOBS), clock)

    after(live, clock, t0_at, 20, 0)
    for late_s in (1, 6, 11, 16):
        after(live, clock, t0_at, 20, late_s)

    assert len(ranges(server)) == 3
    counters = read_counters(directory)[0]
    assert (counters.elapsed_s, counters.step_s) == (20, 1.0)
    assert only_series(directory).values == pytest.approx(np.arange(21) + 0.5, abs=0.1)


def test_a_long_load_has_fewer_values_a_second(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    server.plant("cpu", lambda at: 0.5, instance="db1:9100")
    live = LiveCounters(directory, settings_of(server.url, CPU), clock)

    for elapsed_s in (POINTS - 10, POINTS + 10, 3 * POINTS):
        after(live, clock, t0_at, elapsed_s, 0)

    counters = read_counters(directory)[0]
    assert counters.step_s == 4.0
    assert len(only_series(directory).values) == 3 * POINTS // 4 + 1
    assert [one["step"] for one in server.asked if "step" in one] == ["1.000", "2.000", "4.000"]


def test_a_gap_is_filled_once_the_server_is_back(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    server.plant("jobs", lambda at: at - t0_at, instance="mq:1")
    live = LiveCounters(directory, settings_of(server.url, JOBS), clock)
    after(live, clock, t0_at, 20, 0)

    server.status = 503
    with pytest.raises(live_counters.PrometheusAwayError):
        after(live, clock, t0_at, 40, 0)
    server.status = 0
    after(live, clock, t0_at, 60, 0)

    assert only_series(directory).values[:60] == pytest.approx(np.arange(60) + 0.5, abs=0.1)


def test_loads_that_follow_each_other_have_an_axis_each(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    server.plant("jobs", lambda at: at - t0_at, instance="mq:1")
    live = LiveCounters(directory, settings_of(server.url, JOBS), clock)
    after(live, clock, t0_at, 20, 0)

    clock.now = t0_at + 60
    live.loads = {
        0: LoadSpan(t0_at=t0_at, elapsed_s=20.0),
        1: LoadSpan(t0_at=t0_at + 40, elapsed_s=20.0),
        2: LoadSpan(t0_at=t0_at + 59, elapsed_s=1.0),
    }
    live.look()

    assert sorted(read_counters(directory)) == [0, 1]
    assert only_series(directory, 1).values[0] == pytest.approx(40.5, abs=0.1)


def test_of_many_series_the_greatest_are_kept(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    for number in range(50):
        server.plant("jobs", lambda _, value=number: value, instance=f"mq{number}:1")
    live = LiveCounters(directory, settings_of(server.url, JOBS), clock)

    after(live, clock, t0_at, 20, 0)
    after(live, clock, t0_at, 30, 0)

    hosts = [one.host for one in read_counters(directory)[0].series]
    assert hosts == [f"mq{number}" for number in range(49, 29, -1)]


@pytest.mark.parametrize("status", [422, 503])
def test_a_query_that_fails_is_sent_again_after_a_minute_and_others_go_on(
    server: FakePrometheus, directory: RunDirectory, clock: Clock, status: int
) -> None:
    t0_at = clock.now
    for query in ("cpu", "jobs"):
        server.plant(query, lambda at: at - t0_at, instance="db1:9100")
    live = LiveCounters(directory, settings_of(server.url), clock)
    after(live, clock, t0_at, 20, 0)

    server.errors["jobs"], server.error_status = "timed out", status
    for elapsed_s in (25, 30, 60):
        after(live, clock, t0_at, elapsed_s, 0)

    assert len(ranges(server, "jobs")) == 2
    # what is known of it stays on the page
    known = {one.name: np.isfinite(one.values) for one in read_counters(directory)[0].series}
    assert {name: len(one) for name, one in known.items()} == {"CPU": 61, "jobs": 61}
    assert known["CPU"][:59].all()
    assert known["jobs"][:20].all()
    assert not known["jobs"][21:].any()
    server.errors.clear()
    after(live, clock, t0_at, 90, 0)
    assert all(np.isfinite(one.values[:89]).all() for one in read_counters(directory)[0].series)


@pytest.mark.parametrize("status", [422, 503])
def test_the_query_that_fails_may_be_the_first(
    server: FakePrometheus, directory: RunDirectory, clock: Clock, status: int
) -> None:
    t0_at = clock.now
    server.plant("jobs", lambda _: 5.0, instance="mq1:15692")
    server.errors["cpu"], server.error_status = "too busy", status
    live = LiveCounters(directory, settings_of(server.url), clock)

    after(live, clock, t0_at, 20, 0)
    after(live, clock, t0_at, 30, 0)

    assert len(ranges(server, "cpu")) == 1
    assert only_series(directory).label == "jobs of mq1"


def test_a_query_that_failed_is_sent_again_if_the_time_between_values_is_new(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    server.plant("jobs", lambda _: 5.0, instance="mq1:15692")
    live = LiveCounters(directory, settings_of(server.url, JOBS), clock)
    after(live, clock, t0_at, POINTS - 20, 0)

    server.errors["jobs"] = "too busy"
    after(live, clock, t0_at, POINTS - 10, 0)
    server.errors.clear()
    after(live, clock, t0_at, POINTS + 10, 0)

    assert read_counters(directory)[0].step_s == 2.0


def test_a_server_that_goes_as_the_time_between_values_is_new_takes_no_counters_along(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    t0_at = clock.now
    for query in ("cpu", "jobs"):
        server.plant(query, lambda _: 0.5, instance="db1:9100")
    waits = CounterQuery(name="waits", query="waits")
    server.plant("waits", lambda _: 0.5, instance="db1:9100")
    live = LiveCounters(directory, settings_of(server.url, CPU, JOBS, waits), clock)
    after(live, clock, t0_at, POINTS - 10, 0)

    server.errors["jobs"], server.error_status = "going", 503
    after(live, clock, t0_at, POINTS + 10, 0)
    gone = {one.name for one in read_counters(directory)[0].series}
    after(live, clock, t0_at, POINTS + 20, 0)

    assert gone == {"CPU", "jobs", "waits"}
    assert {one.name for one in read_counters(directory)[0].series} == {"CPU", "waits"}


def test_nothing_is_asked_before_there_is_load(
    server: FakePrometheus, directory: RunDirectory, clock: Clock
) -> None:
    LiveCounters(directory, settings_of(server.url), clock).look()

    assert server.asked == []
    assert not (directory.path / COUNTERS).exists()


# the thread


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_counters, "LOOK_S", 0.01)
    monkeypatch.setattr(live_counters, "LONGEST_S", 0.02)
    monkeypatch.setattr(live_counters, "SHARE", 1e9)


def wait_until(holds: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def running_load() -> dict[int, LoadSpan]:
    return {0: LoadSpan(t0_at=time.time() - 30, elapsed_s=30.0)}


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("status", "text", "why"),
    [
        (401, '{"status": "error", "error": "no token"}', "HTTP 401 no token; look at [metrics]"),
        (200, "<html>a shop</html>", "the response is not from Prometheus's API"),
        (503, "starting\x1b[2J up", "HTTP 503 starting"),
    ],
)
def test_trouble_is_told_once_and_over_when_the_server_answers(
    server: FakePrometheus,
    directory: RunDirectory,
    caplog: pytest.LogCaptureFixture,
    status: int,
    text: str,
    why: str,
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    server.status, server.text = status, text
    url = server.url.replace("http://", "http://anna:s3cret-word@")

    with (
        caplog.at_level(logging.WARNING),
        LiveCounters(directory, settings_of(url, CPU), time.time) as live,
    ):
        live.loads = running_load()
        wait_until(lambda: len(server.asked) > 3)
        told = live.trouble
        server.status = 0
        wait_until(lambda: not live.trouble and read_counters(directory))

    assert why in told
    assert told.endswith("They are tried again.")
    (line,) = caplog.messages
    assert why in line
    assert "s3cret-word" not in told + line
    assert "\x1b" not in told + line


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("status", [422, 503])
def test_a_query_that_fails_is_told_once_with_its_name(
    server: FakePrometheus, directory: RunDirectory, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    server.plant("jobs", lambda _: 5.0, instance="mq1:15692")
    server.errors["cpu"], server.error_status = "too busy", status

    with (
        caplog.at_level(logging.WARNING),
        LiveCounters(directory, settings_of(server.url), time.time) as live,
    ):
        live.loads = running_load()
        wait_until(lambda: read_counters(directory) and "'CPU'" in live.trouble)
        told = live.trouble
        server.errors.clear()
        wait_until(lambda: not live.trouble)

    assert f"not up to date: the query 'CPU' failed: HTTP {status} too busy" in told
    (line,) = caplog.messages
    assert "'CPU'" in line


@pytest.mark.usefixtures("hurried")
def test_nobody_at_the_address_is_told_once(
    directory: RunDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of("http://127.0.0.1:9", CPU)

    with caplog.at_level(logging.WARNING), LiveCounters(directory, settings, time.time) as live:
        live.loads = running_load()
        wait_until(lambda: live.trouble)

    assert "refused" in live.trouble
    assert len(caplog.messages) == 1


@pytest.mark.usefixtures("hurried")
def test_an_answer_that_never_comes_does_not_hold_the_run_up(directory: RunDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with LiveCounters(directory, settings_of(url, CPU), time.time) as live:
            live.loads = running_load()
            asked, _ = silent.accept()
        # the context ended although the query is unanswered
        assert not (directory.path / COUNTERS).exists()
        asked.close()


def looking() -> list[threading.Thread]:
    """The threads that look at counters, also those of tests before that still end."""
    return [one for one in threading.enumerate() if one.name == "live-counters"]


@pytest.mark.usefixtures("hurried")
def test_nothing_is_written_after_the_end(server: FakePrometheus, directory: RunDirectory) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def late(_: float) -> float:
        entered.set()
        assert go_on.wait(PATIENCE_S)
        return 0.5

    server.plant("jobs", late, instance="mq:1")
    before = set(threading.enumerate())
    with LiveCounters(directory, settings_of(server.url, JOBS), time.time) as live:
        (thread,) = [one for one in looking() if one not in before]
        live.loads = running_load()
        assert entered.wait(PATIENCE_S)
    go_on.set()

    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert not (directory.path / COUNTERS).exists()


@pytest.mark.usefixtures("hurried")
def test_a_directory_that_cannot_be_written_is_told_once(
    server: FakePrometheus, directory: RunDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    server.plant("jobs", lambda _: 1.0, instance="mq:1")
    (directory.path / COUNTERS).mkdir()

    with (
        caplog.at_level(logging.WARNING),
        LiveCounters(directory, settings_of(server.url, JOBS), time.time) as live,
    ):
        live.loads = running_load()
        wait_until(lambda: live.trouble)

    assert "cannot write" in live.trouble
    assert len(caplog.messages) == 1


@pytest.mark.usefixtures("hurried")
def test_a_fault_of_our_own_ends_the_reading_with_its_traceback(
    server: FakePrometheus,
    directory: RunDirectory,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Prometheus, "now_s", lambda _: {}["no such"])

    with LiveCounters(directory, settings_of(server.url), time.time) as live:
        live.loads = running_load()
        wait_until(lambda: live.trouble)

    assert "KeyError" in live.trouble
    assert "Traceback" in caplog.text
