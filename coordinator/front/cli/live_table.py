"""The live display of a run on a terminal: a table for each workload, with a row a worker."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.results.storage.progress import (
    HOT_CPU,
    ODD_STATES,
    Snapshot,
    WorkerProgress,
    done_words,
    left_words,
    worker_title,
)

#: Characters of a bar.
BAR = 20
#: Lines of a workload without the lines of its workers; fewer workers than this are never shown.
_LINES = 8
_LEAST = 2


def live_table(snapshots: Sequence[Snapshot], height: int) -> RenderableType:
    """Return the display of `snapshots`, in at most `height` lines if possible.

    If there are many workers, only some of them have a row, at least `_LEAST` per workload.
    """
    loads = [one for one in snapshots if one.workload >= 0]
    lines = _LINES + any(one.longest for one in loads) + any(one.awaited for one in loads)
    room = max(_LEAST, height // max(1, len(loads)) - lines)
    parts = [_workload(one, room) if one.workload >= 0 else contexts_line(one) for one in snapshots]
    return Group(*parts)


def contexts_line(snapshot: Snapshot) -> Text:
    """Return the progress of a context as a line: seconds, phase, bar and counts."""
    planned = snapshot.planned or 1
    return Text(
        f"[{snapshot.elapsed_s:6.1f} s] {plain(snapshot.phase)} {bar(snapshot.settled, planned)} "
        f"{snapshot.settled}/{planned}"
    )


def bar(done: int, planned: int) -> str:
    """Return a text bar of `BAR` characters: the fraction of `planned` that is done."""
    return f"[{'#' * (BAR * done // max(1, planned)):.<{BAR}}]"


def _workload(one: Snapshot, room: int) -> RenderableType:
    parts: list[RenderableType] = [_head(one), Padding(_figures(one), (0, 0, 0, 2))]
    if one.longest:
        parts.append(Padding(Text(f"longest: {plain(one.longest)}", style="magenta"), (0, 0, 0, 2)))
    if one.awaited:
        text = Text(f"waits for {plain(one.awaited)}", style="magenta")
        parts.append(Padding(text, (0, 0, 0, 2)))
    if one.sla:
        parts.append(Padding(_criteria(one), (0, 0, 0, 2)))
    if one.rows:
        parts.append(Padding(_workers(one.rows, room), (0, 0, 1, 2)))
    return Group(*parts)


def _head(one: Snapshot) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(plain(one.name), style="bold")
    text.append(f"  {plain(one.phase)} {one.elapsed_s:.1f} s  ")
    if one.planned is not None:
        text.append(f"{bar(one.settled, one.planned)} ")
    elif one.left_s is not None:
        text.append(f"{bar(round(one.elapsed_s), round(one.elapsed_s + one.left_s))} ")
    text.append(f"{done_words(vars(one))}{left_words(vars(one))}")
    if one.search:
        text.append(f"  {plain(one.search)}")
    if one.away:
        text.append(f"  unreachable: {plain(one.away)}", style="bold red")
    return text


def _figures(one: Snapshot) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for head in (
        "rate",
        f"{one.latency} p50",
        "p95",
        "p99",
        "failed",
        "in flight",
        "start lag p99",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_row(
        f"{three_digits(one.rate)}/s",
        *map(duration, (one.p50_s, one.p95_s, one.p99_s)),
        Text(count(one.failed), style="red" if one.failed else ""),
        count(one.busy),
        duration(one.lag_p99_s),
    )
    return table


def _criteria(one: Snapshot) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    # failing criteria go first: they must be visible if the line is too long
    for criterion in sorted(one.sla, key=lambda criterion: criterion.met):
        sign, style = ("✓", "dim") if criterion.met else ("✗", "red")
        text.append(f"{sign} {plain(criterion.name)}: {plain(criterion.detail)}  ", style=style)
    return text


def _workers(rows: Sequence[WorkerProgress], room: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("worker", no_wrap=True, overflow="ellipsis")
    for head in ("users in use", "rate", "CPU", "start lag p99"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for row in (shown := _chosen_workers(rows, room)):
        table.add_row(
            Text(plain(worker_title(row.name, row.label))),
            f"{row.busy} of {row.users}",
            f"{three_digits(row.rate)}/s",
            _cpu(row.cpu),
            duration(row.lag_p99_s),
            Text(plain(row.state), style="red" if row.state in ODD_STATES else ""),
        )
    if len(rows) > len(shown):
        table.add_row(Text(f"and {count(len(rows) - len(shown), 'other')}", style="dim"))
    return table


def _cpu(cores: float) -> Text:
    if cores >= HOT_CPU:
        return Text(f"{cores:.0%} !", style="magenta")
    return Text(f"{cores:.0%}")


def _chosen_workers(rows: Sequence[WorkerProgress], room: int) -> list[WorkerProgress]:
    """Return at most `room` of the workers, in their order.

    Workers that are silent, lost or stuck come before others, then the greatest start lags.
    """
    if len(rows) <= room:
        return list(rows)
    ranked = sorted(
        range(len(rows)),
        key=lambda at: (rows[at].state not in ODD_STATES, -(rows[at].lag_p99_s or 0.0)),
    )
    return [rows[at] for at in sorted(ranked[:room])]
