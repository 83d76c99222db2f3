"""Counters at the end of a run, read from a Prometheus that answers, or does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.fake_prometheus import FakePrometheus
from helpers.json_server import serving
from osbench.common.errors import StorageError
from osbench.coordinator.results.accounting.counter_figures import CounterKind
from osbench.coordinator.results.accounting.load_span import LoadSpan
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_collection import (
    CounterSettings,
    collect_counters,
)
from osbench.edges.traces.counters.counter_file import COUNTERS, read_counters
from osbench.edges.traces.counters.counter_query import CounterQuery
from osbench.edges.traces.counters.counter_series import CollectedCounters
from osbench.edges.traces.counters.counter_source import POINTS
from osbench.edges.traces.counters.prometheus import Prometheus
from servers.child import PATIENCE_S

CPU = CounterQuery(name="CPU", query="cpu[$window]", kind=CounterKind.SHARE, unit="share")
JOBS = CounterQuery(name="jobs", query="jobs", kind=CounterKind.QUEUE)


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with serving(FakePrometheus()) as running:
        yield running


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    made = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    yield made
    made.close()


def settings_of(server: FakePrometheus, *queries: CounterQuery) -> CounterSettings:
    return CounterSettings(
        server=Prometheus(server.url), queries=queries or (CPU, JOBS), late_s=0.0
    )


def collected(
    directory: RunDirectory,
    settings: CounterSettings,
    loads: Mapping[int, LoadSpan] | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> CollectedCounters:
    loads = loads or {0: LoadSpan(t0_at=time.time() - 100, elapsed_s=60.0)}
    return collect_counters(directory, settings, loads, time.time, wanted)


def test_counters_lie_on_the_time_axis_of_their_load(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    t0_at = time.time() - 100
    server.plant("cpu", lambda at: at - t0_at, instance="db1:9100")
    server.plant("jobs", lambda at: at - t0_at, instance="mq1:15692")

    found = collected(
        directory, settings_of(server), {3: LoadSpan(t0_at=t0_at, elapsed_s=60.0)}
    ).workloads[3]

    assert (found.step_s, found.elapsed_s) == (1.0, 60.0)
    cpu, jobs = found.series
    assert (cpu.label, cpu.kind) == ("CPU of db1", CounterKind.SHARE)
    assert (jobs.label, jobs.kind) == ("jobs of mq1", CounterKind.QUEUE)
    assert len(cpu.values) == len(jobs.values) == 61
    # a rate over 3 s is that of the time around its middle, a sample is half a scrape old
    assert cpu.values - found.times() == pytest.approx(1.5, abs=0.1)
    assert jobs.values - found.times() == pytest.approx(0.5, abs=0.1)
    assert next(one for one in server.asked if "cpu" in one["query"])["query"] == "cpu[3000ms]"


def test_counters_are_kept_as_they_were_read(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.plant("cpu", lambda at: 0.5 if round(at) % 7 else None, instance="[::1]:9100")

    found = collected(directory, settings_of(server))
    kept = read_counters(directory)[0]

    (one,), (again,) = found.workloads[0].series, kept.series
    assert one.host == again.host == "[::1]"
    assert np.array_equal(one.values, again.values, equal_nan=True)
    assert np.isnan(again.values).any()
    assert kept.step_s == 1.0


def test_a_clock_that_differs_is_corrected_and_told(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.ahead_s = -3600.0
    t0_at = time.time() - 100
    server.plant("cpu", lambda at: at + 3600.0 - t0_at, instance="db1:9100")

    found = collected(directory, settings_of(server), {0: LoadSpan(t0_at=t0_at, elapsed_s=60)})

    (cpu,) = found.workloads[0].series
    assert cpu.values - found.workloads[0].times() == pytest.approx(1.5, abs=0.5)
    (note,) = [one for one in found.notes if "clock" in one]
    assert f"the clock of {server.url} is 60.0 m behind the clock of Redis" in note


def test_queries_without_series_are_counted_and_no_error(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    server.plant("cpu", lambda _: 0.4, instance="db2:9100")

    found = collected(directory, settings_of(server))

    assert found.notes == (
        f"counters: 2 counters of 2 hosts from {server.url}, one value per 1.00 s",
        "counters: 1 of 2 queries had no series: jobs",
    )


@pytest.mark.parametrize(
    ("names", "said"), [("abc", "3 of 4 queries had no series: a, b, c"), ("abcd", "a, b, c, ...")]
)
def test_three_queries_without_series_are_named(
    server: FakePrometheus, directory: RunDirectory, names: str, said: str
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    without = (CounterQuery(name=name, query=name, kind=CounterKind.QUEUE) for name in names)

    found = collected(directory, settings_of(server, CPU, *without))

    assert found.notes[-1].endswith(said)


def test_a_query_that_is_refused_is_told_and_others_are_read(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.plant("jobs", lambda _: 5.0, instance="mq1:15692")
    server.errors["cpu"] = "parse error"

    found = collected(directory, settings_of(server))

    assert [one.label for one in found.workloads[0].series] == ["jobs of mq1"]
    assert f"counters: the query 'CPU' was refused by {server.url}: HTTP 400 parse error" in (
        found.notes
    )


@pytest.mark.parametrize(("status", "text"), [(404, "not here"), (200, "<html>")])
def test_another_program_is_one_note(
    server: FakePrometheus, directory: RunDirectory, status: int, text: str
) -> None:
    server.status, server.text = status, text

    found = collected(directory, settings_of(server))

    assert found.workloads == {}
    (note,) = found.notes
    assert note.startswith(f"counters: could not be read from {server.url}: ")
    assert "Look at [metrics] prometheus" in note
    assert read_counters(directory) == {}


def test_nobody_at_the_address_is_one_note(directory: RunDirectory) -> None:
    settings = CounterSettings(server=Prometheus("http://127.0.0.1:9"), late_s=0.0)

    (note,) = collected(directory, settings).notes

    assert "could not be read from http://127.0.0.1:9: " in note


def test_an_answer_that_does_not_come_ends_with_the_limit(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    calls: list[float] = []

    def hangs(at: float) -> float:
        calls.append(at)
        time.sleep(0.05)
        return 0.5

    server.plant("cpu", hangs, instance="db1:9100")
    settings = replace(settings_of(server), limit_s=0.2)

    found = collected(directory, settings)

    assert found.workloads == {}
    assert "not all were read: [metrics] limit_s was over" in found.notes[-1]


def test_a_run_that_is_stopped_reads_none(server: FakePrometheus, directory: RunDirectory) -> None:
    found = collected(directory, settings_of(server), wanted=lambda: False)

    assert found.notes == ("counters: not read, the run was stopped",)
    assert server.asked == []


def test_loads_at_once_are_asked_for_once_and_others_apart(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    now = time.time()
    server.plant("cpu", lambda at: at - now, instance="db1:9100")
    loads = {
        0: LoadSpan(t0_at=now - 300, elapsed_s=60.0),
        1: LoadSpan(t0_at=now - 299.7, elapsed_s=30.0),
        2: LoadSpan(t0_at=now - 200, elapsed_s=50.0),
        3: LoadSpan(t0_at=now - 100, elapsed_s=0.5),
    }

    found = collected(directory, settings_of(server, CPU), loads).workloads

    assert sorted(found) == [0, 1, 2]
    assert [len(found[number].series[0].values) for number in sorted(found)] == [61, 31, 51]
    assert found[1].series[0].values[0] == pytest.approx(-300 + 1.5, abs=0.2)
    assert found[2].series[0].values[0] == pytest.approx(-200 + 1.5, abs=0.2)
    assert sum(one["path"].endswith("query_range") for one in server.asked) == 2


def test_short_loads_have_no_counters_and_the_note_says_why(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.scrape_s = 15.0
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")

    found = collected(
        directory, settings_of(server), {0: LoadSpan(t0_at=time.time() - 30, elapsed_s=20.0)}
    )

    assert found.notes == (
        f"counters: no load was as long as 3 scrapes of {server.url}, which are 15.0 s apart",
    )


def test_long_loads_have_some_hundred_values(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    day = {0: LoadSpan(t0_at=time.time() - 90_000, elapsed_s=86_400.0)}

    found = collected(directory, settings_of(server, CPU), day).workloads[0]

    assert len(found.series[0].values) == POINTS
    # rates are over all of the time between two values
    asked = next(one for one in server.asked if "cpu" in one["query"])
    assert asked["query"] == f"cpu[{round(1000 * found.step_s)}ms]"


def test_of_many_series_the_greatest_are_kept(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    for number in range(50):
        server.plant("cpu", lambda _, value=number / 50: value, instance=f"node{number}:9100")

    found = collected(directory, settings_of(server, CPU))

    hosts = [one.host for one in found.workloads[0].series]
    assert hosts == [f"node{number}" for number in range(49, 29, -1)]
    assert "counters: 30 series of CPU with smaller values were left out" in found.notes


def test_hosts_have_the_names_that_they_call_themselves(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    server.plant("cpu", lambda _: 0.9, instance="10.0.0.5:9100")
    server.plant("cpu", lambda _: 0.8, instance="10.0.0.6:9100")
    server.plant("cpu", lambda _: 0.7, instance="10.0.0.7:9100")
    for end, name in ((5, "db1"), (6, "same"), (7, "same")):
        server.plant("node_uname_info", lambda _: 1, instance=f"10.0.0.{end}:9100", nodename=name)

    found = collected(directory, settings_of(server, CPU))

    hosts = [one.host for one in found.workloads[0].series]
    assert hosts == ["db1", "10.0.0.6", "10.0.0.7"]


def test_further_labels_tell_series_of_a_host_apart(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    for queue in ("nova", "neutron"):
        server.plant("jobs", lambda _: 1, instance="mq:1", vhost="/", queue=queue, job="r")
    server.plant("jobs", lambda _: 1, instance="mq:1", vhost="/", queue="nova", job="s")

    found = collected(directory, settings_of(server, JOBS))

    assert [one.label for one in found.workloads[0].series] == [
        "jobs (queue=neutron, vhost=/) of mq",
        "jobs (queue=nova, vhost=/) of mq",
        "jobs (queue=nova, vhost=/) #2 of mq",
    ]


def test_the_last_scrape_is_waited_for(server: FakePrometheus, directory: RunDirectory) -> None:
    now = time.time()
    server.scrape_s = 0.5
    server.plant("jobs", lambda at: at - now, instance="mq:1")
    settings = replace(settings_of(server, JOBS), late_s=10.0)

    found = collected(directory, settings, {0: LoadSpan(t0_at=now - 20, elapsed_s=20.0)})

    assert time.time() >= now + 0.5
    assert len(found.workloads[0].series[0].values) == 41
    assert np.isfinite(found.workloads[0].series[0].values).all()


@pytest.mark.parametrize("stopped", [False, True])
def test_counters_that_were_read_under_load_are_kept_if_there_are_no_others(
    server: FakePrometheus, directory: RunDirectory, stopped: bool
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    collected(directory, settings_of(server, CPU))
    server.status, server.text = 503, "away"

    found = collected(directory, settings_of(server, CPU), wanted=lambda: not stopped)

    assert [one.label for one in found.workloads[0].series] == ["CPU of db1"]
    assert len(found.notes) == (1 if stopped else 2)
    assert "read during the load, perhaps without its end" in found.notes[-1]


LIVE_ONLY = "the report has only counters read during the load, perhaps without its end"


@pytest.mark.parametrize("stopped", [False, True])
def test_a_reading_that_does_not_end_keeps_what_was_read_under_load(
    server: FakePrometheus, directory: RunDirectory, stopped: bool
) -> None:
    now, entered, go_on = time.time(), threading.Event(), threading.Event()
    loads = {
        number: LoadSpan(t0_at=now - 300 + 100 * number, elapsed_s=60.0) for number in range(2)
    }
    for query in ("cpu", "jobs"):
        server.plant(query, lambda _: 0.5, instance="db1:9100")
    collected(directory, settings_of(server), loads)

    def jobs(at: float) -> float:
        if at > now - 220:
            entered.set()
            if not stopped:
                # the handler breaks off
                raise ConnectionAbortedError
            assert go_on.wait(PATIENCE_S)
        return 0.7

    server.series.clear()
    server.plant("cpu", lambda _: 0.7, instance="db1:9100")
    server.plant("jobs", jobs, instance="db1:9100")
    found = collected(
        directory,
        settings_of(server),
        loads,
        wanted=lambda: not (stopped and entered.is_set()),
    )
    go_on.set()

    kept = read_counters(directory)
    for some in (found.workloads, kept):
        values = {number: [one.values[0] for one in some[number].series] for number in some}
        assert values == {0: pytest.approx([0.7, 0.7]), 1: pytest.approx([0.5, 0.5])}
    assert found.notes[-1] == f"counters: of 1 workload {LIVE_ONLY}"
    why = "not all were read" if stopped else "could not all be read from"
    assert any(one.startswith(f"counters: {why}") for one in found.notes)


def test_what_was_read_is_shown_if_there_is_nothing_else(
    server: FakePrometheus, directory: RunDirectory
) -> None:
    def jobs(_: float) -> float:
        raise ConnectionAbortedError

    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    server.plant("jobs", jobs, instance="db1:9100")

    found = collected(directory, settings_of(server))

    assert [one.label for one in found.workloads[0].series] == ["CPU of db1"]
    (note,) = found.notes
    assert f"could not all be read from {server.url}: " in note


@pytest.mark.parametrize("live", [False, True])
def test_without_space_the_report_has_what_is_on_disk(
    server: FakePrometheus, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    if live:
        collected(directory, settings_of(server, CPU))
    server.plant("jobs", lambda _: 5.0, instance="mq1:15692")

    def full(*_: object, **__: object) -> None:
        raise StorageError("cannot write counters: No space left on device; make room there")

    monkeypatch.setattr(RunDirectory, "replace", full)
    found = collected(directory, settings_of(server))

    kept = read_counters(directory)
    for some in (found.workloads, kept):
        labels = {number: [one.label for one in some[number].series] for number in some}
        assert labels == ({0: ["CPU of db1"]} if live else {})
    assert found.notes.count(f"counters: {LIVE_ONLY}") == live
    assert any("No space left on device; make room" in one for one in found.notes)


def test_counters_that_were_read_under_load_are_synced_at_the_end(
    server: FakePrometheus, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plant("cpu", lambda _: 0.5, instance="db1:9100")
    collected(directory, settings_of(server, CPU))
    synced: list[str] = []
    replaced = RunDirectory.replace

    def replace_file(self: RunDirectory, name: str, content: bytes, *, sync: bool) -> None:
        synced.extend([name] if sync else [])
        replaced(self, name, content, sync=sync)

    monkeypatch.setattr(RunDirectory, "replace", replace_file)
    collected(directory, settings_of(server, CPU), wanted=lambda: False)

    assert synced == [COUNTERS]
