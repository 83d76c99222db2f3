import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from helpers.sample_loads import all_kinds
from helpers.sample_reports import constant_workload, full_report, rps_workload, run_report
from helpers.summaries import to_json
from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.text import render
from osbench.coordinator.results.accounting.totals import Warmup
from osbench.coordinator.results.accounting.workload_users import UserLives, read_events


def text_of(report, width=80, *, details=True, **options):
    """What a terminal of this width shows; rich fills its lines with blanks."""
    file = io.StringIO()
    # as it comes from summary.json
    summary = json.loads(json.dumps(to_json(report)))
    console = Console(file=file, width=width, **options)
    render(Report.from_json(summary), console, details=details)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


@pytest.mark.parametrize("width", [80, 120])
def test_a_run_looks_like_its_golden_file(golden, width):
    text = text_of(full_report(), width)

    assert max(map(len, text.splitlines())) <= width
    golden(f"summary-{width}.txt", text)


@pytest.mark.parametrize("width", [80, 120])
def test_the_short_answer_looks_like_its_golden_file(golden, width):
    text = text_of(full_report(), width, details=False)

    assert max(map(len, text.splitlines())) <= width
    golden(f"short-{width}.txt", text)


def test_a_run_that_is_fine_fits_in_twelve_lines():
    text = text_of(run_report(constant_workload()), details=False)

    assert "Exit code 0" in text.splitlines()[1]
    assert len(text.splitlines()) <= 12


def test_workloads_of_all_kinds_look_like_their_golden_file(golden):
    golden("all-kinds.txt", text_of(all_kinds(), 100))


def test_the_short_answer_has_the_innermost_actions():
    summary = to_json(run_report(constant_workload()))
    (workload,) = summary["workloads"]
    timings = workload["latency"]["service"]
    workload["actions"] = {"look": timings, "look > list": timings, "wait": timings}
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=80))

    names = [line[3:16].strip() for line in file.getvalue().splitlines()]
    assert {"service time", "look > list", "wait"} <= set(names)
    assert "look" not in names


def test_runs_of_older_releases_say_nothing_of_requests_and_loops():
    summary = to_json(run_report(rps_workload()))
    del summary["workloads"][0]["requests"], summary["workloads"][0]["loops"]
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=120), details=True)

    assert "requests" not in file.getvalue()
    assert "delay  " not in file.getvalue()


def test_requests_without_any_answer_have_no_phases():
    summary = to_json(run_report(rps_workload()))
    total = summary["workloads"][0]["requests"]["total"]
    total["unanswered"] = total["requests"]
    for phase in ("wait", "rest"):
        total["phases"][phase] = dict.fromkeys(total["phases"][phase]) | {"count": 0}
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=120), details=True)

    assert "requests    948: 20 new connections" in file.getvalue()


def test_no_color_leaves_no_colour(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    red = "\x1b[1;31mExit code 3"

    coloured = text_of(full_report(), force_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    bold = text_of(full_report(), force_terminal=True)

    assert red in coloured
    assert "\x1b[1mExit code 3" in bold
    assert "\x1b" not in text_of(full_report())


def test_foreign_text_can_neither_steer_the_terminal_nor_act_as_markup():
    summary = to_json(run_report(rps_workload()))
    summary["workloads"][0]["errors"][0]["message"] = "\x1b[2J[red]gone[/red]\nsecond line"
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=200), details=True)

    assert "GatewayTimeout: \\x1b[2J[red]gone[/red] (first" in file.getvalue()


def test_a_note_ends_with_the_last_lines_of_a_log_and_no_other_has_more_than_one():
    died = (
        "the private server was killed by SIGKILL; the last lines of its log:\n  9:M # OOM\n  \x1b"
    )

    told = text_of(run_report(constant_workload(), notes=(died, "an error\nExit code 0: all well")))

    assert "of its log:\n   9:M # OOM\n   \\x1b\nNote: an error\n" in told
    assert "all well" not in told


def test_more_errors_than_fit_are_summed():
    summary = to_json(run_report(rps_workload()))
    error = summary["workloads"][0]["errors"][0]
    summary["workloads"][0]["errors"] = [
        {**error, "type": f"Error{n}", "count": n} for n in range(9, 0, -1)
    ]
    summary["workloads"][0]["other_errors"] = 100
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=120), details=True)

    assert "110 x other errors" in file.getvalue()


def test_a_sum_that_does_not_hold_is_shown_as_such():
    summary = to_json(run_report(constant_workload()))
    summary["workloads"][0]["accounting"]["planned"] = 9
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=80), details=True)

    assert "9 planned != 8 ok" in file.getvalue()


def times_text(**changed):
    """The table of times of a workload whose service times are `changed`."""
    summary = to_json(run_report(rps_workload()))
    workload = summary["workloads"][0]
    ok = workload["latency"]["service"]["ok"]
    sound = {**ok, "ci": {name: [ok[name], ok[name]] for name in ok["ci"]}, "ci_note": None}
    empty = {**sound, "count": 0}
    states = {"ok": {**sound, **changed}, "failed": empty, "timed_out": empty}
    workload["latency"] = {"service": states, "response": {**states, "ok": sound}}
    workload["actions"] = {}
    file = io.StringIO()
    render(Report.from_json(summary), Console(file=file, width=100), details=True)
    return file.getvalue(), sound["ci"]


def test_percentiles_with_both_bounds_have_no_mark_and_no_footnote():
    text, _ = times_text()

    assert "*" not in text
    assert "bound" not in text


def test_a_percentile_without_upper_bound_is_marked_among_others_that_have_one():
    _, bounds = times_text()

    text, _ = times_text(ci={**bounds, "p99": [0.1, None]}, ci_note="no upper bound of p99: so")

    (marked,) = [line for line in text.splitlines() if "ms*" in line]
    assert "service time" in marked
    assert marked.count("*") == 1
    assert "* no upper bound of p99: so" in text


def test_a_row_without_any_interval_has_no_marks_and_the_reason_once():
    _, bounds = times_text()

    text, _ = times_text(ci=dict.fromkeys(bounds), ci_note="no intervals: too short")

    assert "*" not in text
    assert text.count("no intervals: too short") == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0"),
        (1e-9, "1.00ns"),
        (9.996e-6, "10.0us"),
        (0.9994, "999ms"),
        (0.9996, "1.00s"),
        (99.96, "100s"),
        (599, "599s"),
        (600, "10.0m"),
        (7200, "2.00h"),
        (864000, "240h"),
        (-5, "-5.00s"),
        (-0.0123, "-12.3ms"),
        (-600, "-10.0m"),
    ],
)
def test_durations_have_three_digits(seconds, text):
    assert duration(seconds) == text


def test_words_for_numbers():
    assert count(1234567) == "1,234,567"
    assert count(1, "process", "processes") == "1 process"
    assert count(2, "process", "processes") == "2 processes"
    assert count(0, "span") == "0 spans"
    assert three_digits(0.01667) == "0.0167"
    assert three_digits(12345.6) == "12,346"
    assert three_digits(-12345.6) == "-12,346"
    assert plain("a" * 300) == "a" * 197 + "..."


def test_a_warm_up_is_told_where_there_was_one():
    warmed = replace(rps_workload(), warmup=Warmup(seconds=2.5, left_out=1234))

    text = text_of(run_report(warmed), 120)

    assert "1,234 iterations of the first 2.50s count only in the sum above" in text
    assert "warm-up" not in text_of(run_report(rps_workload()))


def test_lost_workers_are_named_among_the_workers():
    workload = rps_workload()
    workers = [
        replace(worker, pid=40 + at, lost=worker.host == "node1")
        for at, worker in enumerate(workload.workers)
    ]
    many = [replace(workers[0], pid=pid) for pid in range(1, 10)]

    two = text_of(run_report(replace(workload, workers=tuple(workers))), 120)
    nine = text_of(run_report(replace(workload, workers=tuple(many))), 120)

    assert "workers     2 processes on node1, 1 process on node2\n" in two
    assert "2 of them lost: node1:40, node1:41\n" in two
    assert (
        "9 of them lost: node1:1, node1:2, node1:3, node1:4, node1:5, node1:6 and 3 others" in nine
    )
    assert "of them lost" not in text_of(run_report(workload))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_table_of_times_wraps_no_name(width):
    summary = to_json(run_report(rps_workload()))
    name = "keystone_v3.create_token_of_a_user_with_many_roles"
    (workload,) = summary["workloads"]
    workload["actions"] = {name: next(iter(workload["actions"].values()))}
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=width), details=True)

    assert f"   {name}" in file.getvalue()


def test_of_many_workloads_those_that_held_have_a_line_each():
    held = constant_workload()

    few = text_of(run_report(*[held] * 12))
    many = text_of(run_report(*[held] * 12, rps_workload()), 120)

    assert "met all criteria with no failure" not in few
    assert many.index("12. Authenticate.keystone") < many.index(
        "12 workloads met all criteria with no failure"
    )
    assert many.count("service time") == 1
    assert "\n   3. Dummy.dummy: 8 ok, p95 5.00ms\n" in many


def test_of_many_actions_the_longest_are_listed_and_names_are_proposed():
    summary = to_json(run_report(rps_workload()))
    (workload,) = summary["workloads"]
    like = next(iter(workload["actions"].values()))
    longer = {**like, "ok": {**like["ok"], "mean": 9 * like["ok"]["mean"]}}
    workload["actions"] = {f"get-{n:04}": longer if n > 1990 else like for n in range(2000)}
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=120), details=True)

    text = file.getvalue()
    assert text.count("   get-") == 20
    assert "get-1999" in text
    assert "and 1,980 actions more, with less time in all" in text
    assert "More than 200 names of actions" in text


def test_users_that_could_never_start_are_told_with_their_number():
    lives = UserLives()
    lives.add(read_events([[0, 1, 0, 5, 0], *[[1, number, 0, 9, 0] for number in (2, 3)]]), {})

    statistics = rps_workload().statistics
    statistics.lives = lives
    text = text_of(run_report(replace(rps_workload(), statistics=statistics)), 200)

    assert "2 of 3 could never start; 2 attempts to start failed" in text
