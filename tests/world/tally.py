"""What many schedules came to: how much was played, what struck, what broke."""

from __future__ import annotations

from collections import Counter

from world.schedule import Played

_HEAD = """# The simulated world

`make world` plays the product itself under virtual time: coordinators, workers, a Redis, a broker
and a disk in one process, from a seed, with faults ([ADR 39](adr/0039-one-world.md)). After each
schedule judges look at every start, row, report and file. This page shows the results of one run.
"""


class Tally:
    """Sums over schedules."""

    def __init__(self, first: int) -> None:
        """`first`: the first seed."""
        self._first = first
        self._schedules = 0
        self.broken = 0
        self._virtual_s = 0.0
        self._starts = 0
        self._struck: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._findings: Counter[str] = Counter()

    def add(self, one: Played) -> None:
        """Count a schedule."""
        self._schedules += 1
        self.broken += bool(one.findings)
        self._virtual_s += one.virtual_s
        self._starts += one.starts
        self._struck += one.struck
        self._states += one.states
        self._findings.update({found.kind for found in one.findings})

    def _rows(self) -> list[tuple[str, str]]:
        last = self._first + self._schedules - 1
        return [
            ("schedules", f"{self._schedules:,} (seeds {self._first} to {last})"),
            ("virtual hours", f"{self._virtual_s / 3600:,.1f}"),
            ("iterations started", f"{self._starts:,}"),
            *((f"reported as {name}", f"{count:,}") for name, count in self._states.most_common()),
            ("schedules that broke something", f"{self.broken:,}"),
            *((f"  {kind}", f"{count:,}") for kind, count in self._findings.most_common()),
        ]

    def text(self) -> str:
        """All of it, for a terminal."""
        struck = [(f"struck by {name}", f"{count:,}") for name, count in self._struck.most_common()]
        return "\n".join(f"{name:34} {value}" for name, value in [*self._rows(), *struck])

    def page(self) -> str:
        """All of it, as a page of docs/."""
        rows = [f"| {name.strip()} | {value} |" for name, value in self._rows()]
        struck = [f"| {name} | {count:,} |" for name, count in self._struck.most_common()]
        return "\n".join(
            [_HEAD, "| | |", "|---|---|", *rows, "", "| fault | times |", "|---|---|", *struck, ""]
        )
