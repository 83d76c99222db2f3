"""The list of runs with a user's search words and sort column, and its rows in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.results.storage.progress import done_words
from osbench.coordinator.results.storage.run_listing import FINISHED, RUNNING

#: Rows of a page that somebody has searched or sorted.
MOST = 500

#: Columns by which runs are sorted: name in the address, head, and value of a row.
COLUMNS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {
    "task": ("task", lambda row: row["task"].lower()),
    "verdict": ("verdict", lambda row: row["verdict"] or row["state"]),
    "p95": ("p95", lambda row: row["p95_s"]),
    "rate": ("ok/s", lambda row: row["rate"]),
    "failed": ("failed", lambda row: row["failed"]),
    "planned": ("planned", lambda row: row["planned"]),
    "duration": ("took", lambda row: row["duration_s"]),
    "run": ("run", lambda row: row["run"]),
    "deployment": ("deployment", lambda row: row["deployment"]),
}
#: Columns of texts, which are sorted from the first letter on.
_TEXTS = ("task", "verdict", "deployment")


@dataclass(frozen=True, kw_only=True)
class ListChoice:
    """A user's choice in the list of runs: search words, sort column and order."""

    #: Words that all have to be in a row.
    query: str = ""
    #: A name of `COLUMNS`.
    sort: str = "run"
    #: From the least to the greatest.
    ascending: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> ListChoice:
        """Parse the choice from the parameters q, sort and order of a URL.

        Missing and unknown values become defaults: all runs, the newest first.
        """
        sort = parameters.get("sort", "run")
        return cls(
            query=parameters.get("q", "").strip()[:200],
            sort=sort if sort in COLUMNS else "run",
            ascending=parameters.get("order") == "up",
        )

    @property
    def is_usual(self) -> bool:
        """Return whether it is the default choice: all runs, the newest first."""
        return self == USUAL

    def of_rows(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows that contain all search words, sorted by the chosen column.

        Searched are id, task, state, verdict, deployment and tags, in any case of letters. Rows
        without a value in the column come last.
        """
        words = self.query.lower().split()
        found = [row for row in rows if all(word in _text(row) for word in words)]
        value = COLUMNS[self.sort][1]
        known = [row for row in found if value(row) is not None]
        known.sort(key=value, reverse=not self.ascending)
        return known + [row for row in found if value(row) is None]

    def heads(self) -> list[dict[str, Any]]:
        """Return a dict for the head of each column: its name, text and sorting.

        Keys: `name`, `text`, `left` (if it is aligned so), `sorted` as of `aria-sort`, and `order`,
        the value "up" or "down" that a click on it gives.
        """
        return [
            {
                "name": name,
                "text": text,
                "left": name in ("run", *_TEXTS),
                "sorted": ("ascending" if self.ascending else "descending")
                if name == self.sort
                else "none",
                "order": self._next(name),
            }
            for name, (text, _) in COLUMNS.items()
        ]

    def _next(self, name: str) -> str:
        ascending = not self.ascending if name == self.sort else name in _TEXTS
        return "up" if ascending else "down"


USUAL = ListChoice()


def _text(row: Mapping[str, Any]) -> str:
    words = (row["run"], row["task"], row["state"], row["verdict"], row["deployment"], *row["tags"])
    return " ".join(str(word) for word in words if word).lower()


def shown_row(
    row: Mapping[str, Any], progress: Callable[[], Mapping[str, Any] | None]
) -> dict[str, Any]:
    """Return a copy of a row of the list with texts for the page instead of numbers.

    `progress` returns the content of a running run's status.json, None before it is written; it is
    called only for such a run, whose row has the figures so far.
    """
    running = row["state"] == RUNNING
    about = plain(row["why"] or "", 120)
    if running:
        status = progress()
        about = _progress_words(status)
        row = {**row, **_figures_so_far(status)}
    verdict = row["verdict"] if row["state"] == FINISHED else row["state"]
    return {
        **{name: row[name] for name in ("run", "task", "state", "tags")},
        "archived": row.get("archived", False),
        "at": _local(row["started_at"]),
        "verdict": verdict,
        "bad": not running and verdict not in ("met", "done"),
        "exit": "" if row["exit"] is None else row["exit"],
        "p95": duration(row["p95_s"]),
        "rate": "-" if row["rate"] is None else three_digits(row["rate"]),
        "failed": "" if row["failed"] is None else count(row["failed"]),
        "planned": "" if row["planned"] is None else count(row["planned"]),
        "took": duration(row["duration_s"]),
        "deployment": row["deployment"] or "",
        "about": about,
    }


def _progress_words(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "begins"
    return (
        f"{plain(status['name'])} {status['phase']} for {status['elapsed_s']:.0f} s: "
        f"{done_words(status)}"
    )


def _figures_so_far(status: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return figures of a running run: p95, rate and duration (the greatest), and two sums.

    The sums are `failed` and `planned`, None if a workload has none; a figure that is not known is
    None.
    """
    now = [status, *status.get("beside", ())] if status else []

    def known(name: str) -> list[float]:
        return [one[name] for one in now if one.get(name) is not None]

    figures: dict[str, Any] = {name: max(known(name), default=None) for name in ("p95_s", "rate")}
    for name in ("failed", "planned"):
        # a sum without one that is not known would mislead
        figures[name] = sum(known(name)) if now and len(known(name)) == len(now) else None
    return {**figures, "duration_s": max(known("elapsed_s"), default=None)}


def _local(at: Any) -> str:
    """Return a time, seconds since 1970, as local "2026-04-01 12:00"; "" unless it is a number."""
    if not isinstance(at, int | float):
        return ""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def zone() -> str:
    """Return the abbreviation of this host's time zone, such as CET."""
    return time.strftime("%Z")
