"""Notes of a run: each fact has one sentence, made from typed facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from helpers.sample_reports import constant_workload
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.report.run_outcome import Breach, Disturbances, RunEnd
from osbench.coordinator.report.statements.run_notes import notes_of
from osbench.coordinator.results.accounting.workload_requests import ActionRequests

BREACH = Breach("A.b", "failure_rate", "6 of 10 failed")
FAILED = Verdict(criterion="failure_rate", success=False, detail="7 of 12 failed")


def notes(end: RunEnd = RunEnd(), /, **changes: Any) -> list[str]:  # noqa: B008 - it is frozen
    """Notes that a change of a workload, or an end, adds to those of the sample."""
    known = set(notes_of("r", [("A.b", replace(constant_workload(), name="A.b"))], RunEnd(), ()))
    workload = replace(constant_workload(), name="A.b", **changes)
    return [one for one in notes_of("r", [("A.b", workload)], end, ()) if one not in known]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"resumptions": 1}, "the run was resumed once, after its coordinator had ended"),
        ({"rollbacks": 2}, "Redis had lost data of the run 2 times; "),
        ({"undelivered": {"b": 2, "a": 1}}, "3 result blocks did not arrive from a, b: "),
        ({"clock_steps": {"h": (3600.0, 0.0)}}, "the wall clock of h was set back by 3,600.0 s "),
        ({"clock_steps": {"h": (0.0, 12.0)}}, "the wall clock of h was set forward by 12.0 s "),
        ({"refused": {"late": 2}}, "messages were refused (late: 2) and ignored"),
        ({"departed": {"w": "was stuck"}}, "worker w was stuck and got no more work"),
        ({"asides": [("in f.py", 1)]}, "in f.py (1 time)"),
        ({"log_cut": 1}, "in the logs and output of workers 1 entry was too many or too long"),
        ({"started_late": 1200}, "1,200 iterations started after their lease had ended: "),
    ],
)
def test_a_disturbance_is_a_note(found: dict[str, Any], said: str) -> None:
    (note,) = notes(RunEnd(disturbances=Disturbances(**found)))

    assert note.startswith(said)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("abort", "A.b: aborted: p95 above 1 s"),
        ("no_users", "A.b: the load was ended: no virtual user could begin: p95 above 1 s"),
        ("runner_failed", "A.b: the load was ended: the runner's own code failed: p95 above 1 s"),
        ("interrupted", None),
    ],
)
def test_the_cause_that_cut_a_load_short_is_a_note(cause: str, said: str | None) -> None:
    offered = replace(constant_workload().offered, cut_short=cause)

    assert notes(offered=offered, cut_short_by="p95 above 1 s") == ([said] if said else [])


def test_the_reason_of_an_abort_is_said_once() -> None:
    again = notes(RunEnd(breach=BREACH), verdicts=(FAILED,))
    alone = notes(RunEnd(breach=BREACH), verdicts=())

    assert "aborted for a failed SLA: A.b: failure_rate" in again
    assert "aborted for a failed SLA: A.b: failure_rate: 6 of 10 failed" in alone


def test_contexts_left_behind_say_how_to_undo_them() -> None:
    assert notes(RunEnd(left_behind=["A.b: users"])) == [
        "A.b: users; `osbench-coord cleanup r` tries again"
    ]
    by_hand = "A.b: it needs the result of users: remove the resources of this context by hand"
    assert notes(RunEnd(left_behind=[by_hand])) == [by_hand]


def test_the_end_of_the_data_and_workers_without_a_part_are_notes() -> None:
    assert notes(data_used_up="users.csv") == ["A.b: the load ended with the last row of users.csv"]
    (note,) = notes(idle_workers=1)
    assert note.startswith("A.b: constant starts its iterations itself, in one process of one ")


def test_other_clients_and_false_bodies_are_notes() -> None:
    statistics = constant_workload().statistics
    made = ActionRequests()
    made.others, made.false_bodies = 1200, 2
    statistics.requests.actions = {"shop": made}
    statistics.requests.clients = Counter({"libcurl: option proxies": 1200})

    found = notes_of(
        "r", [("A.b", replace(constant_workload(), statistics=statistics))], RunEnd(), ()
    )

    texts = list(found)
    assert (
        "A.b: libcurl made 1,200 of 1,200 requests, which costs more CPU: option proxies" in texts
    )
    assert [one for one in texts if "2 responses have a body that is cut short" in one]
