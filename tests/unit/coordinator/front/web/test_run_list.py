"""The list of runs: searched, sorted, and in words."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.coordinator.front.web import web_pages
from osbench.coordinator.front.web.run_list import COLUMNS, USUAL, ListChoice, shown_row


def row(run: str, **values: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "run": run,
        "task": "Shop",
        "tags": [],
        "deployment": None,
        "started_at": 1775044800.0,
        "state": "finished",
        "exit": 0,
        "planned": 10,
        "ok": 9,
        "verdict": "met",
        "failed": 1,
        "rate": 5.0,
        "p95_s": 0.02,
        "duration_s": 12.0,
        "why": None,
    }
    return usual | values


def names(choice: ListChoice, *rows: dict[str, Any]) -> list[str]:
    return [one["run"] for one in choice.of_rows(rows)]


def test_the_newest_comes_first_and_all_are_there() -> None:
    assert names(USUAL, row("a"), row("c"), row("b")) == ["c", "b", "a"]
    assert ListChoice.of({}).is_usual
    assert ListChoice.of({"sort": "nothing", "order": "x", "q": "  "}).is_usual


@pytest.mark.parametrize(
    ("query", "found"),
    [("shop", ["a"]), ("NIGHTLY", ["b"]), ("not met", ["b"]), ("lab a", ["a"]), ("lab shop x", [])],
)
def test_all_words_are_looked_for(query: str, found: list[str]) -> None:
    rows = row("a", deployment="lab"), row("b", task="X", tags=["nightly"], verdict="not met")

    assert names(ListChoice.of({"q": query}), *rows) == found


@pytest.mark.parametrize(("order", "found"), [("up", ["b", "c", "a"]), ("down", ["c", "b", "a"])])
def test_runs_without_a_value_come_last(order: str, found: list[str]) -> None:
    rows = row("a", p95_s=None), row("b", p95_s=0.1), row("c", p95_s=0.2)

    assert names(ListChoice.of({"sort": "p95", "order": order}), *rows) == found


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_sorts_runs_of_which_nothing_is_known(column: str) -> None:
    nothing = dict.fromkeys(("p95_s", "rate", "failed", "planned", "duration_s", "deployment"))

    found = names(
        ListChoice(sort=column), row("a"), row("b", **nothing, verdict=None, state="running")
    )

    assert sorted(found) == ["a", "b"]


def test_a_click_on_the_head_of_a_column_turns_its_order() -> None:
    heads = {head["name"]: head for head in ListChoice(sort="p95").heads()}

    assert (heads["p95"]["sorted"], heads["p95"]["order"]) == ("descending", "up")
    assert (heads["task"]["sorted"], heads["task"]["order"]) == ("none", "up")
    assert (heads["rate"]["sorted"], heads["rate"]["order"]) == ("none", "down")


def test_a_run_is_told_in_words() -> None:
    found = shown_row(row("a", verdict="not met", exit=1), dict)
    status = {
        "name": "S",
        "phase": "running",
        "elapsed_s": 4,
        "settled": 5,
        "planned": 10,
        "p95_s": 0.01,
    }
    running = shown_row(row("b", state="running", verdict=None, exit=None), lambda: status)
    damaged = shown_row(row("c", state="damaged", verdict=None, why="cut"), dict)

    assert (found["verdict"], found["bad"], found["p95"]) == ("not met", True, "20.0ms")
    assert found["at"].startswith("2026-04-01 ")
    # a number alone would read as that of the criteria
    assert "✕ not met, exit code 1</td>" in web_pages.rows([found], 1)
    assert (running["verdict"], running["bad"]) == ("running", False)
    assert running["about"] == "S running for 4 s: 5 of 10 done"
    assert (running["p95"], running["planned"]) == ("10.0ms", "10")
    assert (damaged["verdict"], damaged["bad"], damaged["about"]) == ("damaged", True, "cut")


@pytest.mark.parametrize(("planned", "shown"), [(20, "30"), (None, "")])
def test_a_running_run_has_the_figures_of_all_workloads_under_load(
    planned: int | None, shown: str
) -> None:
    one = {"name": "S", "phase": "running", "elapsed_s": 4, "settled": 5, "planned": 10}
    one |= {"p95_s": 0.01, "rate": 3.0, "failed": 1}
    other = {**one, "planned": planned, "p95_s": 0.03, "rate": 2.0, "failed": 2}
    running = row("b", state="running", verdict=None, exit=None)

    found = shown_row(running, lambda: {**one, "beside": [other]})

    assert (found["p95"], found["rate"], found["failed"]) == ("30.0ms", "3.00", "3")
    assert found["planned"] == shown


def test_a_run_that_has_written_nothing_begins() -> None:
    found = shown_row(row("b", state="running", verdict=None, planned=None), lambda: None)

    assert (found["about"], found["p95"], found["rate"], found["failed"]) == (
        "begins",
        "-",
        "-",
        "",
    )


def test_task_and_verdict_come_before_the_id() -> None:
    page = web_pages.rows([shown_row(row("20260401-120000-ab12"), dict)], 1)

    cells = page[page.index("<tbody>") :]
    assert cells.index(">Shop</a>") < cells.index("✓ met") < cells.index('id">20260401-120000')
