"""A workload's key `abort`: its load ends, the next ones run, and everything says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from helpers.runs import Finished, Site, checked, site

pytestmark = pytest.mark.functional

ALL_FAIL = {"Dummy.failure": {"sleep": 0.01, "from_iteration": 1, "to_iteration": 10**6, "each": 1}}
RULE = {"failure_rate": 50, "over_s": 1}
NEXT = {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 3}}}
ROWS = 20_000
TIMED = {"constant_for_duration": {"duration": 60, "concurrency": 2}}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def aborted(here: Site) -> Finished:
    """A load of a minute that fails from its start, one after it, and three more that fail."""
    first = {
        "scenario": ALL_FAIL,
        "runner": TIMED,
        "abort": RULE,
        "sla": {"failure_rate": {"max": 100}},
    }
    counted = [
        {"scenario": ALL_FAIL, "runner": runner, "abort": RULE}
        for runner in ({"rps": {"times": 5_000, "rps": 100}}, {"constant": {"times": 50_000}})
    ]
    here.write("rows.csv", "sleep:json\n" + "0.01\n" * ROWS)
    given = {key: value for key, value in ALL_FAIL["Dummy.failure"].items() if key != "sleep"}
    fed = {
        "scenario": {"Dummy.failure": given},
        "args_from": "rows.csv",
        "runner": TIMED,
        "abort": RULE,
    }
    return here.run(here.task(first, NEXT, *counted, fed))


def test_the_load_ends_long_before_its_time_and_the_next_one_runs(aborted: Finished) -> None:
    first, second, *_ = aborted.result["workloads"]

    assert aborted.code == 1, aborted.err
    assert first["offered"]["cut_short"] == "abort"
    assert first["offered"]["duration_s"] < TIMED["constant_for_duration"]["duration"]
    assert checked(first)["failed"] > 0
    assert second["accounting"]["ok"] == 3
    assert second["offered"]["cut_short"] is None


def test_the_summary_says_why(aborted: Finished) -> None:
    first, second, *_ = aborted.result["workloads"]
    criterion, verdict = first["sla"]

    assert (criterion["criterion"], criterion["success"]) == ("failure_rate", True)
    assert (verdict["criterion"], verdict["success"]) == ("abort", False)
    assert "100 %, abort at 50 % over 1 s" in verdict["detail"]
    assert [one["criterion"] for one in second["sla"]] == ["failure_rate"]
    note, *_ = [one for one in aborted.result["notes"] if "aborted" in one]
    assert note == f"Dummy.failure [0]: aborted: {verdict['detail']}"
    assert f"the load is aborted: {verdict['detail']}" in aborted.err


def test_text_rallys_json_and_charts_say_it_too(here: Site, aborted: Finished) -> None:
    run_id = aborted.result["run_id"]
    text = " ".join(here.coord("results", run_id).out.split())
    rally = json.loads(here.coord("results", run_id, "--rally-json").out)
    task = rally["tasks"][0]
    first, second, *_ = (one["workloads"][0] for one in task["subtasks"])

    assert "cut short: abort" in text
    assert "not met Dummy.failure: abort: " in text
    assert task["pass_sla"] is False
    assert (first["pass_sla"], second["pass_sla"]) == (False, True)
    assert [one["status"] for one in task["subtasks"]] == ["aborted", "finished", *["aborted"] * 3]
    (mark,) = [one for one in here.marks(run_id) if one["kind"] == "stop"]
    assert mark["label"] == "aborted"


def test_what_was_not_started_is_no_fault_of_the_generator(aborted: Finished) -> None:
    _, _, *counted, _ = aborted.result["workloads"]

    for workload in counted:
        assert checked(workload)["not_started"] > 0
        assert workload["offered"]["cut_short"] == "abort"


def test_an_aborted_load_has_not_ended_with_the_last_row(aborted: Finished) -> None:
    *_, fed = aborted.result["workloads"]

    assert checked(fed)["failed"] < ROWS
    assert fed["offered"]["cut_short"] == "abort"
    assert "last row" not in " ".join(aborted.result["notes"])
