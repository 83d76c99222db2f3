"""Progress of a run: a live table on a terminal, plain lines otherwise; all on stderr.

The table has a part for each workload, with a row a worker.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.front.cli.piped_console import PipedConsole
from osbench.coordinator.results.storage.progress import (
    HOT_CPU,
    ODD_STATES,
    Snapshot,
    WorkerProgress,
    done_words,
    left_words,
    longest_words,
    worker_title,
)

#: Seconds between plain lines.
PLAIN_S = 2.0
#: Characters of a bar.
BAR = 20
#: Lines of a workload without the lines of its workers; fewer workers than this are never shown.
_LINES = 8
_LEAST = 2


class Progress:
    """Shows progress of the workloads under load, and messages, on stderr; none with `quiet`.

    A live table inside its `with` block on a terminal; else lines.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        #: Gets what is said, also with `quiet`.
        self.listener: Callable[[str], None] | None = None
        self._console = PipedConsole(stderr=True, highlight=False)
        self._live: Live | None = None
        #: By workload: when it was last printed; elapsed time and settled iterations of its last
        #: snapshot; its last snapshot and the time of it.
        self._shown_at: dict[int, float] = {}
        self._before: dict[int, tuple[float, int]] = {}
        self._latest: dict[int, tuple[float, Snapshot]] = {}

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        etype: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, sentence: str) -> None:
        """Print a message unless quiet, and always pass it on to `listener`."""
        if self.listener is not None:
            self.listener(sentence)
        if not self._quiet:
            self._console.print(escaped(sentence, breaks=True), markup=False, soft_wrap=True)

    @property
    def longest(self) -> str:
        """Words for a message, "; longest: ...", on iterations that have run for long; else ""."""
        now = time.monotonic()
        return "".join(
            longest_words(vars(one)) for at, one in self._latest.values() if now - at < PLAIN_S
        )

    def __call__(self, snapshot: Snapshot) -> None:
        """Show a snapshot: in the table of a terminal, else as a line.

        A workload gets a line at most every `PLAIN_S` seconds, and none while workers prepare. With
        `quiet` nothing is shown.
        """
        now = self._note(snapshot)
        if self._quiet:
            return
        if self._live is not None:
            fresh = [one for _, (at, one) in sorted(self._latest.items()) if now - at < PLAIN_S]
            self._live.update(live_table(fresh, self._console.height))
            return
        since_s = now - self._shown_at.get(snapshot.workload, 0.0)
        if since_s >= PLAIN_S and snapshot.phase != "preparing":
            self._shown_at[snapshot.workload] = now
            self._console.print(escaped(self._line(snapshot)), markup=False, soft_wrap=True)

    def _note(self, snapshot: Snapshot) -> float:
        now = time.monotonic()
        self._latest[snapshot.workload] = (now, snapshot)
        return now

    def _line(self, snapshot: Snapshot) -> str:
        if snapshot.workload < 0:
            return str(contexts_line(snapshot))
        away = f", unreachable: {snapshot.away}" if snapshot.away else ""
        failing = f", SLA not met: {', '.join(snapshot.failing)}" if snapshot.failing else ""
        search = f", {snapshot.search}" if snapshot.search else ""
        note = vars(snapshot)
        return (
            f"[{snapshot.elapsed_s:6.1f} s] {snapshot.name} {snapshot.phase}: "
            f"{done_words(note)}{left_words(note)}, {self._rate(snapshot):.0f}/s, "
            f"{snapshot.failed} failed, {snapshot.busy} in flight, "
            f"{count(snapshot.workers, 'worker')}{search}{away}{failing}"
            f"{longest_words(note)}"
        )

    def _rate(self, snapshot: Snapshot) -> float:
        before = self._before.get(snapshot.workload)
        self._before[snapshot.workload] = (snapshot.elapsed_s, snapshot.settled)
        if before is None or snapshot.elapsed_s <= before[0]:
            return 0.0
        return (snapshot.settled - before[1]) / (snapshot.elapsed_s - before[0])


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
