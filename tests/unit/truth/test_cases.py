"""The cases of `make truth`: right values follow from the rules, and what is wrong is found."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from helpers.readme import text
from servers.referee import RULES, RefereeLog
from truth import checks, latencies
from truth.case import Case, judge
from truth.cases import CASES
from truth.planting import Seen

BOUND = {"cause": "stopped", "fault": "generator", "sentence": "it did not run for 8 s"}
#: A run that left no object.
NOTHING = Seen(code=1, err="", summary={})


def seen(code: int = 0, **workload: object) -> Seen:
    summary = {"exit_code": code, "workloads": [workload], "notes": ["none began for 5.1 s, at 9"]}
    return Seen(code=code, err="", summary=summary)


def between(begin: str, end: str) -> dict[str, str]:
    return {
        name: f"2026-04-01T{clock}.000Z"
        for name, clock in (("started_at", begin), ("finished_at", end))
    }


@pytest.mark.parametrize("case", [latencies.overload(), latencies.stall_open()])
def test_right_percentiles_follow_from_the_rule_of_the_referee(case: Case) -> None:
    rule = RULES[case.planting.server](**case.planting.values)
    plan = case.planting.workloads[0]["runner"]["rps"]

    waits = sorted(rule(number / plan["rps"], number) for number in range(plan["times"]))

    right = dict(re.findall(r"\.ok\.(p\d+) ([\d.]+)", case.right))
    assert right
    for name, value in right.items():
        rank = math.ceil(int(name[1:]) / 100 * len(waits))
        assert waits[rank - 1] == pytest.approx(float(value), rel=0.005)


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (checks.exits(4), seen(4), seen(0)),
        (checks.number("a.1", 2.0, within=0.02), seen(a=[0, 2.03]), seen(a=[0, 2.05])),
        (checks.number("a.b", None), seen(a={"b": None}), seen(a={"b": 0.0})),
        (
            checks.share("ok", 0.5, 0.6),
            seen(accounting={"ok": 5, "planned": 10}),
            seen(accounting={"ok": 4, "planned": 10}),
        ),
        (checks.bound("stopped", fault="generator"), seen(bounds=[BOUND]), seen(bounds=[])),
        (checks.bound("late", "stopped", fault="generator"), seen(bounds=[BOUND]), seen()),
        (checks.no_bound("generator"), seen(bounds=[]), seen(bounds=[BOUND])),
        (checks.no_bound(besides=["stopped"]), seen(bounds=[BOUND]), NOTHING),
        (checks.bound_says("8 s"), seen(bounds=[BOUND]), seen(bounds=[])),
        (checks.note("none began"), seen(), NOTHING),
        (
            checks.note_with_number("none began for", 5.0, within=0.1),
            seen(),
            replace(seen(), summary={"notes": ["none began for 6 s"]}),
        ),
        (
            checks.says("no room"),
            Seen(code=3, err="there is no room", summary={}),
            Seen(code=3, err="no room\nTraceback (most recent call last):", summary={}),
        ),
        (
            checks.requests_once("POST", 2),
            replace(seen(), log=RefereeLog(iterations={"POST": {"1": 1, "2": 1}})),
            replace(seen(), log=RefereeLog(iterations={"POST": {"1": 1, "2": 2}})),
        ),
        (
            checks.verdict("percentile", "p90"),
            seen(sla=[{"criterion": "percentile", "success": False, "detail": "p90 is 3 s"}]),
            seen(sla=[{"criterion": "percentile", "success": True, "detail": "p90 is 1 s"}]),
        ),
        (
            checks.verdict("percentile", without="own doing"),
            seen(sla=[{"criterion": "percentile", "success": False, "detail": "p90 is 3 s"}]),
            seen(sla=[{"criterion": "percentile", "success": False, "detail": "its own doing"}]),
        ),
        (
            checks.capacity(130, 132),
            seen(search={"kind": "found", "rate": 127, "low": 120, "high": 134}),
            seen(search={"kind": "found", "rate": 37.8, "low": 30.6, "high": 44.5}),
        ),
        (checks.capacity(130, 132), seen(4, search={"rate": None}), seen(0, search={"rate": None})),
        (
            checks.recovery(within_s=0.5),
            replace(seen(drill={"recovery_s": 4.4}), log=RefereeLog(changes=[2.0, 6.0])),
            replace(seen(drill={"recovery_s": 0.0}), log=RefereeLog(changes=[2.0, 6.0])),
        ),
        (
            checks.gaps(0.5, within_s=0.1, least=3),
            replace(seen(), log=RefereeLog(requests=[(0, "/"), (0.5, "/"), (1.05, "/")])),
            replace(seen(), log=RefereeLog(requests=[(0, "/"), (0.02, "/"), (1.05, "/")])),
        ),
        (
            checks.paths(lambda at_s: f"/{int(at_s)}", 2),
            replace(seen(), log=RefereeLog(requests=[(0, "/0"), (0.95, "/1")])),
            replace(seen(), log=RefereeLog(requests=[(0, "/0"), (0.7, "/1")])),
        ),
        (
            checks.lasts(20),
            replace(seen(), summary=between("10:00:00", "10:00:20")),
            replace(seen(), summary=between("10:00:00", "10:10:00")),
        ),
        (
            checks.unsaid("lost"),
            seen(accounting={}),
            replace(seen(accounting={}), err="1 of 2 workers was lost"),
        ),
        (checks.no_workloads(), Seen(code=2, err="", summary={"error": {}}), seen()),
        (checks.of(0, checks.exits(0)), seen(0), seen(1)),
    ],
)  # fmt: skip
def test_a_check_tells_right_from_wrong(check: checks.Check, right: Seen, wrong: Seen) -> None:
    assert check.look(right)[1]
    assert not check.look(wrong)[1]


def test_a_workload_that_never_began_is_looked_for_in_json_and_junit() -> None:
    check = checks.not_begun(1, planned=20)
    unbegun = {"accounting": {"planned": 20}, "not_begun": "the run was interrupted before"}
    summary = {"workloads": [{}, unbegun]}
    found = Seen(code=130, err="", summary=summary, junit="<testsuite a><testsuite b><error x>")

    assert check.look(found)[1]
    assert not check.look(replace(found, junit="<testsuite a><error x><testsuite b>"))[1]
    assert not check.look(replace(found, summary={"workloads": [{}]}))[1]


def test_a_row_marks_what_is_wrong_and_leaves_out_what_a_busy_machine_changes() -> None:
    timed = checks.number("a", 1.0, is_timed=True)
    case = replace(CASES["ramp"], checks=[checks.exits(0), timed])

    row = judge(case, seen(a=9.0))

    assert row.printed == "exit 0; !! a 9"
    assert not row.is_right
    assert judge(case, seen(a=9.0), lenient=True).is_right


def test_the_page_names_every_case() -> None:
    _, _, page = text("docs/truth.md").partition("## Cases")
    table = re.findall(r"^\| `([\w`, -]+?)` \|", page, re.M)

    assert sorted(name for row in table for name in re.split(r"`, `", row)) == sorted(CASES)
