"""The commands `compare` and `trends` on run directories."""

import dataclasses
import json
import shlex
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from bench.evidence import trend_runs
from helpers.commands import call
from helpers.queue_runs import Queue, side
from helpers.recording_server import recording_server
from helpers.sample_reports import full_report
from osbench.common.errors import OsbenchError
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.accounting.totals import Bound
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_timeline
from osbench.edges.history.commands import alternating_runs
from osbench.edges.history.commands.alternating_runs import AlternatingRuns, sound_pairs
from osbench.edges.history.commands.compare import compare
from osbench.edges.history.commands.trends import trends
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_json import comparison_json
from osbench.edges.history.comparison.comparison_page import compare_command
from osbench.edges.history.comparison.evidence import Evidence, numbered_blocks

QUEUE = Queue(duration_s=60)


@pytest.fixture
def invoke(tmp_path):
    """Call a command with a data directory of the test."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    group = Group(commands=[compare, trends])

    def call(*args):
        return CliRunner().invoke(group, [*args, "--config-file", str(conf)])

    return call


def keep(data_dir, runs, tag=None):
    """Write runs as run directories."""
    for run in runs:
        directory = RunDirectory.create(str(data_dir), run.run_id)
        tags = [tag] if tag else []
        directory.write("run.json", {**run.manifest, "tags": tags})
        directory.write("summary.json", {**run.summary, "tags": tags})
        write_timeline(directory, {**run.timeline, "summary": run.summary}, sync=False)
        directory.close()


def chance():
    return np.random.default_rng(1)


def test_two_runs_give_intervals_and_exit_code_0(invoke, tmp_path):
    keep(tmp_path, side(QUEUE, chance(), "A", 2))

    found = invoke("compare", "A0", "last")

    assert found.exit_code == 0, found.output
    assert "run-to-run spread is unknown" in found.output
    assert "before A0" in found.output
    assert "after  A1" in found.output
    assert " % to +" in found.output


def test_what_is_worse_gives_exit_code_1_and_what_is_better_0(invoke, tmp_path):
    random = chance()
    keep(tmp_path, side(QUEUE, random, "A", 4), "before")
    keep(tmp_path, side(QUEUE, random, "B", 4, slower=1.3), "after")

    worse = invoke("compare", "A0", "A1", "A2", "A3", "--against", "B0", "B1", "B2", "B3")
    by_tag = invoke("compare", "tag:before", "tag:after", "--json")
    better = invoke("compare", "tag:after", "--against", "tag:before")

    assert worse.exit_code == by_tag.exit_code == 1
    assert "Worse: p" in worse.output
    assert json.loads(by_tag.stdout)["after"] == ["B0", "B1", "B2", "B3"]
    assert better.exit_code == 0
    assert "Better: p" in better.output


def test_runs_whose_load_was_another_are_left_out_and_named(invoke, tmp_path):
    random = chance()
    before, after = side(QUEUE, random, "A", 4), side(QUEUE, random, "B", 4)
    after[1].summary["exit_code"] = 4
    keep(tmp_path, before, tag="before")
    keep(tmp_path, after, tag="after")

    done = invoke("compare", "tag:before", "tag:after", "--json")
    trend = invoke("trends", "--tag", "after")

    assert json.loads(done.stdout)["after"] == ["B0", "B2", "B3"]
    said = "Warning: left out: run B1 ended with exit code 4: "
    assert said in done.stderr
    assert said in trend.stderr


def test_many_runs_whose_load_was_another_are_one_line(invoke, tmp_path):
    after = side(QUEUE, chance(), "B", 9)
    for run in after[:7]:
        run.summary["exit_code"] = 3
    keep(tmp_path, after, tag="after")

    said = invoke("trends", "--tag", "after").stderr

    assert said.count("left out") == 1
    assert "left out: 7 runs whose load was not the requested one: 2 earlier, B2 (exit" in said


def test_earlier_runs_in_the_data_directory_say_how_much_runs_differ(invoke, tmp_path):
    random = chance()
    keep(tmp_path, side(QUEUE, random, "H", 6))
    keep(tmp_path, [*side(QUEUE, random, "A", 1), *side(QUEUE, random, "B", 1, slower=1.4)])

    found = invoke("compare", "A0", "B0", "--json")

    assert found.exit_code == 1
    assert json.loads(found.stdout)["basis"] == "history"


def test_the_command_of_a_page_of_pairs_gives_the_same_verdict(invoke, tmp_path):
    random = chance()
    before, after = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3)
    after[1].summary["exit_code"] = 4
    keep(tmp_path, [*before, *after])
    evidence = Evidence(before=before, after=after, in_pairs=True)

    assert_same_again(invoke, evidence, "pairs")


def test_the_command_of_a_page_of_blocks_gives_the_same_verdict(invoke, tmp_path):
    random = chance()
    before, after = side(QUEUE, random, "A", 6), side(QUEUE, random, "B", 6, slower=1.2)
    keep(tmp_path, [*before, *after])

    assert_same_again(
        invoke,
        Evidence(before=before, after=after, blocks=numbered_blocks(before, after, 2)),
        "blocks",
    )


def assert_same_again(invoke, evidence, basis):
    """Expect the command line of a comparison to make the comparison again."""
    made = comparison_json(compare_sides(evidence, anyway=True))

    program, *args = shlex.split(compare_command(compare_sides(evidence, anyway=True)))
    found = invoke(*args, "--json")

    assert (program, made["basis"]) == ("osbench-coord", basis)
    again = json.loads(found.stdout)
    assert again == json.loads(json.dumps(made))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("A0",), "give two runs, or several of each side"),
        (("A0", "A1", "A2"), "give two runs, or several of each side"),
        (("A0", "--against"), "--against needs at least one run"),
        (("A0", "A0"), "A0 is given twice"),
        (("A0", "no-such"), "no run 'no-such'"),
        (("A0", "tag:none"), "no finished run has the tag 'none'"),
        (("A0", "unfinished"), "run unfinished has no results to compare"),
        (("A0", "A1", "--in-pairs"), "two at least: got 1 and 1"),
        (("A0", "A1", "--against", "tag:x", "--in-pairs"), "name each by its id, not by a tag"),
        (("A0", "A1", "--against", "A2", "--in-pairs"), "two at least: got 2 and 1"),
        (("A0", "A1", "--in-blocks", "2"), "6 runs or more on each side, by blocks of 2: got 1"),
        (("A0", "A1", "--in-blocks", "0"), "0 is not in the range"),
        (("A0", "--against", "tag:x", "--in-blocks", "1"), "--in-blocks needs runs in order"),
        (("A0", "A1", "--in-blocks", "1", "--in-pairs"), "runs are in pairs or in blocks"),
        (("A0", "A1", "--html", "/no/such/folder/c.html"), "cannot write /no/such/folder/c.html"),
    ],
)
def test_bad_input_gives_one_message_and_exit_code_2(invoke, tmp_path, args, message):
    keep(tmp_path, side(QUEUE, chance(), "A", 3))
    RunDirectory.create(str(tmp_path), "unfinished").close()

    found = invoke("compare", *args)

    assert found.exit_code == 2
    assert message in found.output
    assert "Traceback" not in found.output


def test_both_tasks_of_a_duel_are_checked_before_one_runs(tmp_path):
    (tmp_path / "a.yaml").write_text("Dummy.dummy: [{}]")
    (tmp_path / "b.yaml").write_text("version: 2\ntitle: x\nsubtasks: []\n")

    found = call(tmp_path, "duel", "a.yaml", "b.yaml")

    assert found.returncode == 2
    assert "b.yaml" in found.stderr
    assert not (tmp_path / ".osbench").exists()


def test_a_duel_leaves_out_pairs_that_the_generator_limited():
    random = chance()
    first, second = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3)
    limited = dataclasses.replace(second[1], summary={**second[1].summary, "exit_code": 4})
    pairs = [*zip(first, [second[0], limited, second[2]], strict=True)]

    kept, said = sound_pairs(pairs, anyway=False)

    assert [(one.run_id, other.run_id) for one, other in kept] == [("A0", "B0"), ("A2", "B2")]
    assert said == ["The pair A1 and B1 is left out: exit codes 0 and 4"]
    assert sound_pairs(pairs, anyway=True) == (pairs, [])
    assert sound_pairs(pairs[1:2], anyway=False) == (pairs[1:2], [])


@pytest.mark.parametrize(
    ("interrupts", "exit_code", "said"), [(0, 2, "these runs"), (1, 130, "interrupted; these runs")]
)
def test_pairs_of_an_interrupted_duel_that_cannot_be_compared(
    monkeypatch, interrupts, exit_code, said
):
    random = chance()
    (first,), (second,) = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)
    limited = dataclasses.replace(second, summary={**second.summary, "exit_code": 4})
    monkeypatch.setattr(alternating_runs, "checked_plan", lambda *_: None)
    monkeypatch.setattr(alternating_runs, "compared_runs", lambda *_: [first, limited])
    ended = Report(run_id="any", exit_code=0)

    def run(settings, wanted, progress, noted, *tags):
        noted.count = interrupts if tags[-1].endswith("-B") else 0
        return ended

    monkeypatch.setattr(alternating_runs, "run_tagged", run)
    runs = AlternatingRuns(None, (SimpleNamespace(source="a"),) * 2, Progress(quiet=True))
    runs.run(1)
    assert runs.interrupted == bool(interrupts)

    with pytest.raises(OsbenchError, match=f"^{said} should not be compared") as caught:
        runs.result(SimpleNamespace(anyway=False, margin=None), ("a", "b"))

    assert caught.value.exit_code == exit_code


def test_a_page_is_written(invoke, tmp_path):
    keep(tmp_path, side(QUEUE, chance(), "A", 2))

    found = invoke("compare", "A0", "A1", "--html", str(tmp_path / "c.html"))

    assert found.exit_code == 0
    assert (tmp_path / "c.html").read_text("utf-8").startswith("<!doctype html>")


def test_trends_are_those_of_the_newest_run_and_those_asked_for(invoke, tmp_path):
    random = chance()
    keep(tmp_path, trend_runs(QUEUE, random, count=12))
    (other,) = side(QUEUE, random, "z", 1)
    other.manifest["deployment"] = "prod"
    keep(tmp_path, [other])

    newest, by_title = invoke("trends", "--json"), invoke("trends", "--task", "a queue", "--json")
    (fingerprint,) = {
        one["fingerprint"] for one in json.loads(by_title.stdout)["trends"] if len(one["runs"]) > 1
    }
    chosen = invoke("trends", "--fingerprint", fingerprint[:6], "--last", "9", "--json")

    (only,) = json.loads(newest.stdout)["trends"]
    assert [run["run_id"] for run in only["runs"]] == ["z0"]
    assert len(json.loads(by_title.stdout)["trends"]) == 2
    (limited,) = json.loads(chosen.stdout)["trends"]
    assert len(limited["runs"]) == 9


def test_trends_print_a_table_and_write_a_page(invoke, tmp_path):
    keep(tmp_path, trend_runs(QUEUE, chance(), count=9))

    found = invoke("trends", "--html", str(tmp_path / "t.html"))

    assert found.exit_code == 0, found.output
    assert "9 runs, run0 to run8" in found.output
    assert (tmp_path / "t.html").read_text("utf-8").count("<svg") >= 3


def test_trends_without_runs_say_so(invoke):
    found = invoke("trends")

    assert found.exit_code == 2
    assert "no finished run matches" in found.output


def at_rates(*rates):
    """Runs of one task at several rates."""
    for rate in rates:
        (run,) = trend_runs(Queue(rate=rate, load=rate / 100, duration_s=10), chance(), count=1)
        (workload,), (asked,) = run.summary["workloads"], run.manifest["workloads"]
        latency = {**workload["latency"], "response": workload["latency"]["service"]}
        offered = {**workload["offered"], "rate_planned": rate}
        workload = {
            **workload,
            "latency": latency,
            "offered": offered,
            "throughput": {"ok_per_s": rate, "span_s": 10.0},
        }
        yield dataclasses.replace(
            run,
            manifest={
                **run.manifest,
                "workloads": [{**asked, "runner": {"rps": {"rps": rate}}}],
            },
            summary={**run.summary, "run_id": f"at{rate}", "workloads": [workload]},
        )


def test_runs_at_several_rates_are_shown_by_load(invoke, tmp_path):
    keep(tmp_path, at_rates(20, 50, 80))

    text = invoke("trends", "--by-load", "--html", str(tmp_path / "s.html"))
    document = json.loads(invoke("trends", "--by-load", "--json").stdout)

    assert text.exit_code == 0, text.output
    assert "Queue.get, deployment lab, by load" in text.output
    rows = [line.split() for line in text.output.splitlines() if "  at" in line]
    assert [row[0] for row in rows] == ["20", "50", "80"]
    assert rows[1][-3:] == ["at50", "<-", "knee"]
    assert "<code>at50</code>" in (tmp_path / "s.html").read_text("utf-8")
    (found,) = document["staircases"]
    assert [step["load"] for step in found["staircase"]["steps"]] == [20, 50, 80]


def test_runs_of_one_load_are_no_staircase_and_it_says_what_to_do(invoke, tmp_path):
    keep(tmp_path, at_rates(20))

    found = invoke("trends", "--by-load")

    assert found.exit_code == 2
    assert "run the task at several rates" in found.output
    both = invoke("trends", "--by-load", "--fingerprint", "abc")
    assert both.exit_code == 2
    assert (
        "--fingerprint cannot be combined with --by-load, which shows runs of different loads"
        in both.output
    )


def test_the_check_of_a_trend_decides_the_exit_code(invoke, tmp_path):
    keep(tmp_path, trend_runs(QUEUE, chance(), count=12))
    like = invoke("trends", "--check")
    worse = side(QUEUE, chance(), "worse", 1, slower=1.5)
    keep(tmp_path, worse)

    text, document = invoke("trends", "--check"), invoke("trends", "--check", "--json")

    assert (like.exit_code, text.exit_code, document.exit_code) == (0, 1, 1)
    assert "is like the runs before it" in like.output
    assert "Run worse0 is worse: p" in text.output
    (check,) = json.loads(document.stdout)["checks"]
    assert check["worse"]
    assert check["run_id"] == "worse0"


def test_a_check_judges_no_runs_of_different_loads(invoke):
    found = invoke("trends", "--check", "--by-load")

    assert found.exit_code == 2
    assert "--by-load" in found.output


def test_a_check_by_tag_judges_the_newest_run_of_each_fingerprint(invoke, tmp_path):
    keep(tmp_path, trend_runs(QUEUE, chance(), count=9), tag="nightly")
    (other,) = side(QUEUE, chance(), "z", 1)
    other.manifest["deployment"] = "prod"
    keep(tmp_path, [other], tag="nightly")

    found = json.loads(invoke("trends", "--check", "--tag", "nightly", "--json").stdout)

    assert sorted((one["run_id"], one["enough"]) for one in found["checks"]) == [
        ("run8", True),
        ("z0", False),
    ]


def test_a_run_that_is_worse_is_sent_as_an_alert(invoke, tmp_path):
    keep(tmp_path, trend_runs(QUEUE, chance(), count=12))

    with recording_server() as server:
        like = invoke("trends", "--check", "--alert", server.url)
        before = server.taken()
        keep(tmp_path, side(QUEUE, chance(), "worse", 1, slower=1.5))
        worse = invoke("trends", "--check", "--alert", server.url)
        (taken,) = server.taken()

    assert (like.exit_code, before, worse.exit_code) == (0, [], 1)
    (alert,) = json.loads(taken.body)["alerts"]
    assert (alert["labels"]["alertname"], alert["labels"]["run"]) == ("OsbenchRunWorse", "worse0")
    assert alert["annotations"]["summary"].startswith("Run worse0 is worse: p")


def test_an_alert_needs_a_check(invoke):
    found = invoke("trends", "--alert", "http://127.0.0.1:9/")

    assert found.exit_code == 2
    assert "--alert needs --check" in found.output


def made(monkeypatch, outcomes, pairs):
    """Alternating runs whose summaries have these exit codes and faults of bounds, in turn."""
    left = iter(outcomes)
    monkeypatch.setattr(alternating_runs, "checked_plan", lambda *_: None)

    def run(*_):
        code, fault = next(left)
        bounds = (Bound(cause="a", fault=fault, sentence="b"),) if fault else ()
        workload = replace(measured_report(full_report()).workloads[0], bounds=bounds)
        return Report(run_id="any", exit_code=code, workloads=(workload,))

    monkeypatch.setattr(alternating_runs, "run_tagged", run)
    runs = AlternatingRuns(None, (SimpleNamespace(source="a"),) * 2, Progress(quiet=True))
    runs.run(pairs)
    return runs, sum(1 for _ in left)


def test_pairs_that_the_generator_limited_are_made_again_up_to_a_bound(monkeypatch):
    good, limited, hidden = (0, ""), (4, "generator"), (1, "generator")

    runs, left = made(monkeypatch, [*[limited, good], *[good, hidden], *[good] * 8, *[good] * 4], 4)
    assert (left, runs.lack_of_pairs(4)) == (4, "")
    runs, left = made(monkeypatch, [limited, good] * 20, 4)
    assert left == 40 - 16
    assert runs.lack_of_pairs(4).startswith(
        "the load generator was the limit in 8 of 8 pairs, and 3 others are needed; use a dedicated"
    )


def test_lost_iterations_make_no_pair_again_and_a_failing_change_is_seen_beside_limits(monkeypatch):
    runs, left = made(monkeypatch, [(3, "")] * 8, 4)
    assert (left, runs.lack_of_pairs(4)) == (0, "")

    # both sides in turn: A B, B A
    runs, _ = made(monkeypatch, [(0, ""), (1, ""), (4, "generator"), (0, ""), (0, ""), (1, "")], 2)
    assert runs.only_second_fails
