"""Progress of a run: a live table on a terminal, plain lines otherwise; all on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.live import Live

from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.live_table import contexts_line, live_table
from osbench.coordinator.front.cli.piped_console import PipedConsole
from osbench.coordinator.results.storage.progress import (
    Snapshot,
    done_words,
    left_words,
    longest_words,
)

#: Seconds between plain lines.
PLAIN_S = 2.0


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
        """Show a snapshot: in the table of a terminal, else as a line every `PLAIN_S` seconds.

        Shows nothing with `quiet`, and no line while workers prepare.
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
        """Keep a snapshot for `longest`; return the time, monotonic."""
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
