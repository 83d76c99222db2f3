"""Counters and calls by span that stay up after an overload, beside others that come back.

Each figure is planted: chance decides which ones stay up, and how far.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.planted_counters import counters_of, queue, share
from helpers.planted_overloads import rows_of
from osbench.coordinator.plugins.runners.schedule import Even
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.overload import overload_statistics, watched_counters
from osbench.edges.overload.holding_watcher import HoldingWatcher
from osbench.edges.overload.overload_plan import OverloadPlan
from osbench.edges.overload.overload_statistics import OverloadStatistics
from osbench.edges.overload.watched_counters import span_figures
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import LOST_STOP, Span, Trace

PLAN = OverloadPlan.of(
    {"times": 2, "for": 10, "back_to": 0.5, "before": 20, "watch": 40}, capacity=100
)
DUE = Even(PLAN.curve).due(0, None, 1000)
#: One of so many iterations is traced.
TRACED = 20


def trace_id(at: int) -> bytes:
    return int(at + 1).to_bytes(16, "big")


def statistics(until_s: float = 1000.0) -> OverloadStatistics:
    """The statistics of a load that ends early, perhaps; every iteration takes 20 ms."""
    made = OverloadStatistics(PLAN)
    for here in np.array_split(np.flatnonzero(until_s > DUE), 30):
        columns = rows_of(here, DUE, DUE, DUE + 0.02, np.ones(len(DUE), bool))
        some = here[here % TRACED == 0]
        traces = np.frombuffer(b"".join(map(trace_id, some)), "V16")
        made.add(replace(columns, traced=some + 1, traces=traces))
    return made


def trace(at: int, calls: dict[str, int], **more: Any) -> Trace:
    """A trace whose root makes so many calls, each by its name."""
    names = ["iteration", *(name for name, number in calls.items() for _ in range(number))]
    spans = tuple(
        Span(f"{place:016x}", "" if place == 1 else f"{1:016x}", name, "shop", "h", 0, 1, **more)
        for place, name in enumerate(names, 1)
    )
    return Trace(trace_id=trace_id(at).hex(), spans=spans)


def directory(path: Path, *traces: Trace) -> RunDirectory:
    archive = Archive(path)
    for one in traces:
        archive.keep(one)
    archive.release()
    return RunDirectory(path)


def watched(made: OverloadStatistics, run: RunDirectory, counters: Any) -> list[dict[str, Any]]:
    """The figures that stayed up, as the watcher finds them after the load."""
    watcher = HoldingWatcher.of(
        SimpleNamespace(workloads=[SimpleNamespace(runner=SimpleNamespace(NAME="overload"))]),
        resumed=False,
    )
    assert watcher is not None
    watcher.begin(SimpleNamespace(directory=run))
    outcome: Any = SimpleNamespace(statistics=SimpleNamespace(drill_phases=made), counters=counters)
    watcher.collect([outcome], {})
    overload = made.figures().overload
    assert overload is not None
    return list(overload["held_by"])


@pytest.mark.parametrize("until_s", [1000.0, 60.0])
@pytest.mark.parametrize("seed", range(5))
def test_planted_figures_that_persist_are_named_with_their_values_and_no_others(
    tmp_path: Path, seed: int, until_s: float
) -> None:
    chance = np.random.default_rng(seed)
    end_s = min(until_s, float(DUE[-1]))
    # in the order of time: before, overload, the first and the second half of the observation
    edges = (PLAN.begin_s, PLAN.return_s, (PLAN.return_s + end_s) / 2)
    stays = dict(zip("abcd", chance.permutation([True, True, False, False]).tolist(), strict=True))
    usual = {name: float(chance.uniform(0.5, 3)) for name in stays}
    raised = {name: usual[name] * float(chance.uniform(1.6, 4)) + 0.5 for name in stays}

    def level(name: str, at_s: float) -> float:
        in_overload = PLAN.begin_s <= at_s < PLAN.return_s
        is_up = in_overload or (stays[name] and at_s >= PLAN.return_s)
        return raised[name] if is_up else usual[name]

    traces, numbers = [], {name: ([], [], [], []) for name in stays}
    for at in np.flatnonzero(until_s > DUE)[::TRACED].tolist():
        calls = {}
        for name in stays:
            mean = level(name, DUE[at])
            calls[name] = int(mean) + int(chance.random() < mean % 1)
            numbers[name][int(np.digitize(DUE[at], edges))].append(calls[name])
        traces.append(trace(at, calls))
        # of another run, or incomplete: neither counts
        traces.append(trace(at + 10**6, dict.fromkeys(stays, 50)))
    traces[4:4] = [trace(at, {"a": 90}, marks=LOST_STOP) for at in (0, 20, 2000, 4000)]
    seconds = range(int(end_s) + 1)
    # of any size by its unit: 4 to 12 ms
    waits = [0.004 * level("a", at) for at in seconds]
    cpu = [0.2 * level("b", at) / raised["b"] for at in seconds]

    held = watched(
        statistics(until_s),
        directory(tmp_path, *traces),
        counters_of(queue("lock waits", "db", waits, "s"), share("CPU", "web", cpu)),
    )

    found = {one["name"]: one for one in held}
    spans = {f"calls of shop {name} per iteration": name for name in stays}
    assert {spans[name] for name in found if name in spans} == {
        name for name in stays if stays[name]
    }
    for label, name in spans.items():
        if label in found:
            one, sample = found[label], numbers[name]
            assert one["before"] == pytest.approx(np.mean(sample[0]))
            assert one["overload"] == pytest.approx(np.mean(sample[1]))
            # the middle of the observation is known to a few arrivals
            assert one["end"] == pytest.approx(np.mean(sample[3]), abs=0.3)
    assert ("lock waits of db" in found) == stays["a"]
    if stays["a"]:
        one = found["lock waits of db"]
        assert (one["unit"], one["before"]) == ("s", pytest.approx(0.004 * usual["a"]))
        assert one["end"] == pytest.approx(0.004 * raised["a"])
    is_clear = 0.2 - 0.2 * usual["b"] / raised["b"] >= 0.05
    assert ("CPU of web" in found) == (stays["b"] and is_clear)
    assert found.keys() <= {*spans, "lock waits of db", "CPU of web"}


def test_a_long_time_before_leaves_traces_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload_statistics, "_TRACED", 7)
    monkeypatch.setattr(overload_statistics, "_TRACED_PART", 2)

    names = list(statistics().traced.values())

    assert {name: names.count(name) for name in names} == {
        "before": 7,
        "overload": 7,
        "after": 32,
        "end": 32,
    }


def test_kinds_and_spans_beyond_the_limits_are_left_out_in_all_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_counters, "_KINDS", 3)
    monkeypatch.setattr(watched_counters, "_MOST_SPANS", 60)
    traced = {trace_id(at): "before" if at < 50 else "end" for at in range(100)}
    # before, names with numbers take the place of `late`, which is as often there
    traces = [
        trace(at, {"call": 1 if at < 50 else 2, f"odd {at % 25}": 1, "late": 1})
        for at in range(100)
    ]

    found = list(span_figures(directory(tmp_path, *traces), traced))

    assert [(one.name, one.before, one.end) for one in found] == [
        ("calls of shop call per iteration", 1.0, 2.0),
    ]


def test_few_traces_of_a_stretch_and_unreadable_ones_name_nothing(tmp_path: Path) -> None:
    traced = {trace_id(at): "before" if at < 50 else "end" for at in range(54)}
    run = directory(tmp_path, *(trace(at, {"call": 1 + at // 50}) for at in range(54)))

    assert list(span_figures(run, traced)) == []
    assert list(span_figures(RunDirectory(tmp_path / "missing"), traced)) == []
