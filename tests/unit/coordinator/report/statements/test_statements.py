"""What is said of workloads, in the terminal and on the page."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest

from helpers.sample_loads import all_kinds, plan_of
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.workload_parts import (
    CheckCounts,
    ContextReport,
    ContextStepReport,
    HookRun,
)
from osbench.coordinator.report.statements.iteration_statements import CHECKS
from osbench.coordinator.report.statements.statements import statements
from osbench.coordinator.results.accounting.drill_figures import LeftFigures, LeftKind

WORKLOADS = measured_report(all_kinds()).workloads


def texts(workload: WorkloadReport, label: str) -> list[str]:
    return [one.text for one in statements(workload) if one.label == label]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: str(one.name))
def test_statements_with_one_label_stand_together(workload: WorkloadReport) -> None:
    labels = [label for label, _ in groupby(one.label for one in statements(workload))]

    assert len(labels) == len(set(labels))
    assert "" not in labels


def test_what_the_page_shows_elsewhere_is_not_among_its_further_figures() -> None:
    found = {one.label for one in statements(WORKLOADS[1]) if one.on_page}

    assert {"users", "checks", "planned"} <= found
    assert not {"stages", "staircase", "SLA", "errors", "tracing"} & found


def test_a_plan_of_which_nothing_was_measured_has_its_differences_alone() -> None:
    unmeasured = replace(WORKLOADS[1], plan=plan_of(measured=False))

    assert texts(unmeasured, "planned") == [
        "",
        "an iteration took 55 ms, 2.75 times the plan",
    ]


def test_many_checks_that_did_not_hold_are_summed() -> None:
    checks = {f"check {n}": CheckCounts(held=1, failed=n) for n in range(1, CHECKS + 5)}

    found = texts(replace(WORKLOADS[1], checks=checks), "checks")

    assert len(found) == CHECKS
    assert found[0] == "check 14: failed 14 of 15 times"
    assert found[-1] == "and 5 others that did not always pass"


def test_damaged_hooks_and_contexts_are_told_without_the_missing_parts() -> None:
    hook = HookRun(summary={"success": 1})
    context = ContextReport(name="shop", setup=ContextStepReport(), cleanup=ContextStepReport())

    damaged = replace(WORKLOADS[1], hooks=(hook,), contexts=(context,))

    assert texts(damaged, "hooks") == ["? by ?: 1 success"]
    assert texts(damaged, "contexts") == ["shop, set up, undone"]


def test_of_a_workload_that_did_not_begin_only_contexts_are_told() -> None:
    (unbegun,) = [one for one in WORKLOADS if one.error]
    contexts = WORKLOADS[0].contexts

    found = [one.label for one in statements(replace(unbegun, contexts=contexts))]

    assert found == ["contexts"] * len(contexts)


def test_a_workload_about_which_little_is_known_has_its_load_and_tracing() -> None:
    found = [one.label for one in statements(WorkloadReport(name="w"))]

    assert found == ["load", "tracing"]


def test_users_that_could_never_start_are_not_among_those_that_sustained_the_load() -> None:
    load = WORKLOADS[1].offered
    closed = replace(load, concurrency=8, concurrency_held=1.0, rate_planned=None)

    (text,) = texts(replace(WORKLOADS[1], offered=closed), "load")

    assert text.startswith(
        "8 virtual users requested, 1 could never start, 100.0 % sustained by the others"
    )


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (None, []),
        (LeftFigures(), []),
        (LeftFigures(kinds=(LeftKind(kind="stacks"),)), ["0 resources left in error, of stacks"]),
        (
            LeftFigures(kinds=(LeftKind(kind="stacks"),), unlisted={"ports": "503 \x1b[31mred"}),
            ["0 resources left in error, of stacks", "ports could not be listed: 503 \\x1b[31mred"],
        ),
        (
            LeftFigures(
                kinds=(LeftKind(kind="ports", in_error=1, states={"ERR\x1b[31mOR": 1}),),
            ),
            ["1 resource left in error: 1 port (ERR\\x1b[31mOR); 1 in no phase"],
        ),
        (
            LeftFigures(
                kinds=(LeftKind(kind="ports", changing=1, states={"BUILD": 1}),),
                waited_s=60.1,
                unplaced="blocks is damaged",
            ),
            [
                "1 resource left in error: 1 port (BUILD); 1 still changing after 60.1s of waiting;"
                " 1 in no phase",
                "phases lack resources left in error: blocks is damaged",
            ],
        ),
        (LeftFigures(problem="Ctrl-C ended the search"), ["Ctrl-C ended the search"]),
    ],
)
def test_resources_left_in_error_are_said_with_what_could_not_be_listed(
    left: LeftFigures | None, said: list[str]
) -> None:
    (drill,) = (one for one in WORKLOADS if one.drill is not None)
    assert drill.drill is not None
    phases = tuple(replace(one, left={}) for one in drill.drill.phases)
    workload = replace(drill, drill=replace(drill.drill, left=left, phases=phases))

    found = texts(workload, "drill")

    assert [text for text in found if "left in" in text or "listed" in text or "Ctrl" in text] == (
        said
    )
