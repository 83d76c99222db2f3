"""Progress of a run: a live line on a terminal, plain lines otherwise; all on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from osbench.coordinator.formatting import count
from osbench.coordinator.storage.progress import Snapshot

#: Seconds between plain lines.
PLAIN_S = 2.0
#: Characters of a bar.
BAR = 20


class Progress:
    """Shows snapshots, one line per workload under load. With `quiet` it shows none."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        #: By workload: when it was last printed; elapsed time and settled iterations of its last
        #: snapshot; for the live display, its line and the time of it.
        self._shown_at: dict[int, float] = {}
        self._before: dict[int, tuple[float, int]] = {}
        self._lines: dict[int, tuple[float, str]] = {}

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
        """Print a sentence."""
        if not self._quiet:
            self._console.print(sentence, markup=False, soft_wrap=True)

    def __call__(self, snapshot: Snapshot) -> None:
        """Show a snapshot of the run's progress."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._live is not None:
            self._lines[snapshot.workload] = (now, self._line(snapshot))
            fresh = [line for at, line in self._lines.values() if now - at < PLAIN_S]
            self._live.update(Text("\n".join(fresh)))
            return
        since_s = now - self._shown_at.get(snapshot.workload, 0.0)
        if since_s >= PLAIN_S and snapshot.phase != "preparing":
            self._shown_at[snapshot.workload] = now
            self._console.print(self._line(snapshot), markup=False, soft_wrap=True)

    def _line(self, snapshot: Snapshot) -> str:
        if snapshot.workload < 0:
            return self._contexts_line(snapshot)
        plan = f"/{snapshot.planned}" if snapshot.planned is not None else ""
        away = ", Redis or the broker is unreachable" if snapshot.away else ""
        failing = f", SLA not met: {', '.join(snapshot.failing)}" if snapshot.failing else ""
        return (
            f"[{snapshot.elapsed_s:6.1f} s] {snapshot.name} {snapshot.phase}: "
            f"{snapshot.settled}{plan} done, {self._rate(snapshot):.0f}/s, "
            f"{snapshot.failed} failed, {snapshot.busy} running, "
            f"{count(snapshot.workers, 'worker')}{away}{failing}"
        )

    def _contexts_line(self, snapshot: Snapshot) -> str:
        planned = snapshot.planned or 1
        bar = "#" * (BAR * snapshot.settled // planned)
        return (
            f"[{snapshot.elapsed_s:6.1f} s] {snapshot.phase} [{bar:.<{BAR}}] "
            f"{snapshot.settled}/{planned}"
        )

    def _rate(self, snapshot: Snapshot) -> float:
        before = self._before.get(snapshot.workload)
        self._before[snapshot.workload] = (snapshot.elapsed_s, snapshot.settled)
        if before is None or snapshot.elapsed_s <= before[0]:
            return 0.0
        return (snapshot.settled - before[1]) / (snapshot.elapsed_s - before[0])
