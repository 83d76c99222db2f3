"""Progress of a run: a live line on a terminal, plain lines otherwise; all on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from osbench.coordinator.state import Snapshot

#: Seconds between plain lines.
PLAIN_S = 2.0


class Progress:
    """Shows snapshots. `quiet` shows none."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._shown_at = 0.0
        self._before: tuple[int, float, int] | None = None

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
        """A sentence beside the progress."""
        if not self._quiet:
            self._console.print(sentence, markup=False, soft_wrap=True)

    def __call__(self, snapshot: Snapshot) -> None:
        """Show where the run is."""
        if self._quiet:
            return
        if self._live is not None:
            self._live.update(Text(self._line(snapshot)))
            return
        now = time.monotonic()
        if now - self._shown_at >= PLAIN_S and snapshot.phase != "preparing":
            self._shown_at = now
            self._console.print(self._line(snapshot), markup=False, soft_wrap=True)

    def _line(self, snapshot: Snapshot) -> str:
        plan = f"/{snapshot.planned}" if snapshot.planned is not None else ""
        away = ", Redis or the broker is away" if snapshot.away else ""
        failing = f", SLA not met: {', '.join(snapshot.failing)}" if snapshot.failing else ""
        return (
            f"[{snapshot.elapsed_s:6.1f} s] {snapshot.name} {snapshot.phase}: "
            f"{snapshot.settled}{plan} done, {self._rate(snapshot):.0f}/s, "
            f"{snapshot.failed} failed, {snapshot.busy} running, "
            f"{snapshot.workers} workers{away}{failing}"
        )

    def _rate(self, snapshot: Snapshot) -> float:
        before, self._before = (
            self._before,
            (snapshot.workload, snapshot.elapsed_s, snapshot.settled),
        )
        if before is None or before[0] != snapshot.workload or snapshot.elapsed_s <= before[1]:
            return 0.0
        return (snapshot.settled - before[2]) / (snapshot.elapsed_s - before[1])
