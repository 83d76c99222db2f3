import math

import pytest

from bench import evidence
from bench.interval_coverage import Coverage, coverage_of
from helpers.examples import examples
from helpers.latency_processes import PROCESSES


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_intervals_hold_the_truth_as_often_as_they_say(process):
    found = coverage_of(process, examples(60), seed=3)

    # `make statistics` takes 1,000 runs
    for percent, one in found.items():
        assert not one.wrong(process), (percent, one.share)
        assert len(one.held) >= 0.9 * one.runs, percent


@pytest.mark.parametrize("number", [0, 3, 6, 7, 8, 9], ids=lambda number: PROCESSES[number].name)
def test_independent_latencies_and_a_queue_at_half_load_have_intervals_with_both_bounds(number):
    found = coverage_of(PROCESSES[number], 20)

    assert found[50].bounded == 1
    assert found[95].bounded >= 0.9
    assert math.isfinite(found[50].width)


@pytest.mark.parametrize(
    ("held", "width", "wrong"), [(800, 0.1, True), (950, 0.1, False), (1000, 0.1, True)]
)
def test_a_share_of_intervals_that_is_out_of_bounds_is_wrong(held, width, wrong):
    found = Coverage(runs=1000, held=[True] * held + [False] * (1000 - held), widths=[width] * 1000)

    assert found.wrong(PROCESSES[0]) is wrong


@pytest.mark.parametrize(("last", "code"), [("wrong: p50 of a queue", 1), ("a queue", 0)])
def test_a_table_that_is_wrong_makes_the_command_fail(monkeypatch, capsys, last, code):
    monkeypatch.setattr(evidence, "TABLES", {"one": lambda: ["a table", last]})
    monkeypatch.setattr("sys.argv", ["evidence", "one"])

    with pytest.raises(SystemExit) as ended:
        evidence.main()

    assert ended.value.code == code
    assert last in capsys.readouterr().out
