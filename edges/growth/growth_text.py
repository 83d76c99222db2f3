"""Prints the growth of the requests of a task on a terminal, and formats it as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain
from osbench.coordinator.report.markdown_text import markdown_text
from osbench.coordinator.text_table import TextTable, figures, names, show, texts
from osbench.edges.growth.growth_result import (
    BYTES,
    CALLS,
    SPANS,
    SQL,
    TIME,
    GrowthResult,
    RequestGrowth,
)
from osbench.edges.growth.growth_sentences import (
    exponent_cell,
    law_cell,
    notes,
    remarks,
    short_answer,
    time_estimate,
)
from osbench.edges.growth.growth_verdicts import GrowthVerdict
from osbench.edges.growth.laws import Law

#: Characters of the name of a request in tables.
_NAME = 60
#: Sign and style of a verdict, and its sign in Markdown.
_SIGNS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("?", "magenta")}
_MARKDOWN_SIGNS = {True: "✅", False: "❌", None: "⚪"}


def show_growth(result: GrowthResult, verdicts: Sequence[GrowthVerdict], console: Console) -> None:
    """Print the short message, a table of all requests, details, criteria and notes."""
    grows = bool(result.requests) and result.requests[0].badness[0] > 0
    show(console, Text(short_answer(result), style="bold red" if grows else "bold"))
    show(console, Text())
    show(console, _table(result))
    details = [
        f"{plain(one.name, _NAME)}: {'; '.join(some)}"
        for one in result.requests
        if (some := list(remarks(one, result)))
    ]
    if details:
        show(console, Text())
    for detail in details:
        show(console, Text(detail))
    if verdicts:
        show(console, Text())
    for verdict in verdicts:
        sign, style = _SIGNS[verdict.success]
        show(console, Text(f"{sign} {verdict.sentence}", style=style))
    show(console, Text())
    for note in notes(result):
        show(console, Text(f"{plain(note, 1000)}.", style="italic"))


def _table(result: GrowthResult) -> TextTable:
    shown = shown_measures(result)
    table = TextTable(
        texts("request"),
        figures(f"time at {count(result.populations[-1])}"),
        names("time"),
        figures("exponent", f"at {count(result.predict)}"),
        names(*shown),
        names("verdict"),
    )
    for one in result.requests:
        table.add_row(*row_of(one, result, shown))
    return table


def shown_measures(result: GrowthResult) -> list[str]:
    """Return the columns of the table besides time: the measures that any request has.

    Calls are shown only if their number grows for a request.
    """
    found = []
    for name in (SPANS, SQL, CALLS, BYTES):
        measured = [one.measures[name] for one in result.requests if name in one.measures]
        if name == CALLS:
            measured = [one for one in measured if one.fit.law is not Law.CONSTANT]
        if measured:
            found.append(name)
    return found


def row_of(one: RequestGrowth, result: GrowthResult, shown: Sequence[str]) -> list[str]:
    """Return the cells of a request: name, time, its law, exponent, prediction, counts, verdict."""
    time = one.measures.get(TIME)
    predicted = time.fit.predicted if time is not None else None
    name = _row_name(one, result)
    last = time.points[-1] if time is not None else None
    at_end = last is not None and last.population == result.populations[-1]
    return [
        plain(name, _NAME),
        duration(last.value) if last is not None and at_end else "-",
        law_cell(one, TIME),
        exponent_cell(one, TIME),
        time_estimate(predicted) if predicted is not None else "-",
        *(law_cell(one, name) for name in shown),
        verdict_word(one),
    ]


def _row_name(one: RequestGrowth, result: GrowthResult) -> str:
    """Return the name of a row: workload if there are several, action, and the call."""
    around = one.workload if result.has_workloads else one.key.action
    if one.key.call and one.key.action:
        return f"{around} > {one.key.call}"
    if around and around != one.name:
        return f"{around}: {one.name}"
    return one.name


def verdict_word(one: RequestGrowth) -> str:
    """Return the verdict on a request in a word or two."""
    if one.is_n_plus_one:
        return "N+1"
    if one.badness[0] <= 0:
        return "unclear" if one.unclear else "no growth found"
    return "grows, returns more" if one.returns_more else "grows"


def growth_markdown(result: GrowthResult, verdicts: Sequence[GrowthVerdict]) -> str:
    """Return the growth as Markdown, short enough for a comment on a code change."""
    return "\n".join(_lines(result, verdicts)) + "\n"


def _lines(result: GrowthResult, verdicts: Sequence[GrowthVerdict]) -> Iterator[str]:
    shown = shown_measures(result)
    yield f"**{markdown_text(short_answer(result))}**"
    yield ""
    last, predicted = count(result.populations[-1]), count(result.predict)
    headings = ["request", f"time at {last}", "time", "exponent", f"at {predicted}", *shown, ""]
    yield f"| {' | '.join(headings)} |"
    yield f"|---{'|---' * (len(headings) - 1)}|"
    for one in result.requests:
        yield f"| {' | '.join(map(markdown_text, row_of(one, result, shown)))} |"
    for verdict in verdicts:
        yield ""
        yield f"{_MARKDOWN_SIGNS[verdict.success]} {markdown_text(verdict.sentence)}"
    for note in notes(result):
        yield ""
        yield f"{markdown_text(note)}."
