"""The live table of a terminal: figures, criteria, a row a worker; foreign text stays harmless."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from helpers.web import snapshot, worker_progress
from osbench.coordinator.front.cli.progress_display import live_table
from osbench.coordinator.results.storage.progress import CriterionState, Snapshot, contexts_at

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def shown(*snapshots: Snapshot, width: int = 120, height: int = 40) -> str:
    console = Console(width=width, force_terminal=True, color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(live_table(snapshots, height))
    return capture.get()


def test_a_workload_shows_its_figures_and_workers() -> None:
    text = shown(
        snapshot(
            rate=101.2,
            latency="response",
            p50_s=0.012,
            p95_s=0.0451,
            p99_s=0.1,
            lag_p99_s=0.002,
            sla=(
                CriterionState(name="percentile", met=True, detail="p99 100ms"),
                CriterionState(name="failure_rate", met=False, detail="1 of 40 failed"),
            ),
            rows=(
                worker_progress("host-a:7"),
                worker_progress("host-b:8", label="rack-7", state="silent", cpu=0.97),
            ),
        )
    )

    for part in ("A.b  running 3.0 s", "40 of 100", "101/s", "response p50", "12.0ms", "45.1ms"):
        assert part in text
    # what fails comes first: a long line is cut
    assert text.index("✗ failure_rate") < text.index("✓ percentile")
    lines = text.splitlines()
    (first,) = (line for line in lines if "host-a:7" in line)
    (second,) = (line for line in lines if "host-b:8" in line)
    assert first.split() == ["host-a:7", "2", "of", "4", "12.5/s", "25%", "1.00ms", "running"]
    assert "rack-7 (host-b:8)" in second
    assert second.split()[-1] == "silent"


def test_before_the_first_result_there_are_dashes() -> None:
    text = shown(snapshot(phase="preparing", settled=0, planned=None))

    assert "0 done" in text
    assert " - " in text


def test_a_load_that_ends_at_a_time_has_a_bar_of_that_time() -> None:
    text = shown(snapshot(planned=None, elapsed_s=15.0, left_s=45.0))

    assert "[#####...............] 40 done, 45 s left" in text


def test_of_many_workers_the_odd_ones_and_the_latest_are_shown() -> None:
    rows = [worker_progress(f"host-{n:02}:1", lag_p99_s=n / 1000) for n in range(30)]
    rows[3] = worker_progress("host-03:1", state="lost", lag_p99_s=0.0)

    text = shown(snapshot(rows=tuple(rows)), height=14)

    assert "host-03:1" in text
    assert "host-29:1" in text
    assert "host-00:1" not in text
    assert "and 24 others" in text
    assert len(text.splitlines()) <= 16


def test_workloads_that_run_at_once_share_the_terminal() -> None:
    rows = tuple(worker_progress(f"host-{n:02}:1") for n in range(30))

    text = shown(snapshot(rows=rows), snapshot(workload=1, name="C.d", rows=rows), height=30)

    assert "A.b" in text
    assert "C.d" in text
    assert text.count("others") == 2
    assert len(text.splitlines()) <= 32


def test_contexts_have_their_line() -> None:
    assert "users [##########" in shown(contexts_at("users", 5, 10, 1.5))


def test_names_cannot_steer_the_terminal() -> None:
    text = shown(
        snapshot(
            name="evil\x1b[2J",
            sla=(CriterionState(name="x\x1b]0;t\x07", met=True, detail="[red]d\x9b"),),
            rows=(worker_progress("w\x1b[1m:1", label="[bold]"),),
        )
    )

    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert "\x1b[1m:1" not in text
    assert "\x9b" not in text
    assert "[red]d" in text
    assert "[bold]" in text


def test_a_narrow_terminal_cuts_and_does_not_wrap() -> None:
    wide = shown(snapshot(rows=(worker_progress(),)))
    narrow = shown(snapshot(name="N" * 100, rows=(worker_progress(),)), width=60)

    assert len(narrow.splitlines()) == len(wide.splitlines())


def test_iterations_that_are_waited_for_have_a_line() -> None:
    text = shown(snapshot(awaited="19 iterations of h:1, which is lost"))

    assert "waits for 19 iterations of h:1, which is lost" in text


def test_the_iteration_that_runs_for_longest_has_a_line_of_its_own() -> None:
    text = shown(snapshot(longest="iteration 7 on h:1: 62 s in shop.buy, at shop.py:3 (buy)"))

    assert "longest: iteration 7 on h:1: 62 s in shop.buy, at shop.py:3 (buy)" in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_looks_like_its_golden_file(golden, width) -> None:
    criteria = (
        CriterionState(name="percentile", met=True, detail="p99 100ms, allowed 200ms"),
        CriterionState(name="failure_rate", met=False, detail="1 of 40 failed: 2.5 %, allowed 1 %"),
    )
    rows = (
        worker_progress("host-a:7"),
        worker_progress("host-b:8", label="rack-7", state="silent", cpu=0.97),
    )
    text = shown(
        contexts_at("users@openstack", 3, 8, 1.5),
        snapshot(name="Dummy.dummy [0]", rate=101.2, failed=1, sla=criteria, rows=rows),
        snapshot(workload=1, name="Dummy.dummy [1]", planned=None, elapsed_s=15.0, left_s=45.0),
        width=width,
    )

    assert max(map(len, text.splitlines())) <= width
    golden(
        f"terminals/live-{width}.txt",
        "".join(f"{line.rstrip()}\n" for line in ESCAPE.sub("", text).splitlines()),
    )
