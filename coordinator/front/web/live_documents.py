"""Builds the documents that feeds of the live view send: of one run, or of the list of runs."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import UsageError
from osbench.coordinator.front.web import report_views, web_pages
from osbench.coordinator.front.web.feed import OVER
from osbench.coordinator.front.web.runs_shown import RunsShown
from osbench.coordinator.report.model.model import RUNNING
from osbench.coordinator.report.run_facts import RunFacts, read_facts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import TIMELINE
from osbench.coordinator.results.storage.run_log import LOG as RUN_LOG
from osbench.coordinator.results.storage.run_log import read_log

LOG = logging.getLogger(__name__)

#: The part of a core that drawing the report of a run that goes on may take: what takes longer is
#: drawn less often than each second. What the run is doing now is cheap, and always fresh.
SHARE = 0.01

#: A run that writes nothing for so long may be at an end, or in difficulties.
QUIET_S = 5.0

_MISSING = (0, 0)


class RunDocument:
    """The live document of one run: its feed calls this object for the present state."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._stamp = self._log_stamp = _MISSING
        self._logged: dict[str, Any] = {}
        self._report: dict[str, Any] = {}
        self._failed = False
        #: When the report may be drawn again, monotonic.
        self._next_s = 0.0
        #: The first drawing imports what it needs, and says nothing of what others take.
        self._first = True

    def __call__(self) -> dict[str, Any]:
        """Return the document of the run as it is now; key "over" is true once the run has ended.

        Reads the run directory. Builds the report's part again for a new timeline, in about `SHARE`
        of a core (but at once if it lacks a workload), and at each call once the run has ended.
        """
        directory = self._directory
        # `run --web` serves a little before there is a run directory; in this order, since a run
        # that has its request is locked
        running = directory.is_awaited or directory.has_coordinator()
        status = directory.read("status.json")
        stamp = _stamp(directory, TIMELINE)
        due = stamp != self._stamp and (time.monotonic() >= self._next_s or self._lacks(status))
        # where a run has ended there is a last time to look
        if due or not running:
            self._stamp = stamp
            self._draw()
        summary = directory.read("summary.json") if not running else None
        return {
            "line": state_line(status, running=running, summary=summary),
            "begun": stamp != _MISSING,
            "now": _lines(web_pages.now(status if running else None)),
            "failures": _lines(web_pages.failures(status if running else None)),
            **self._log(),
            **self._report,
            OVER: not running,
        }

    def _log(self) -> dict[str, Any]:
        stamp = _stamp(self._directory, RUN_LOG)
        if not self._logged or stamp != self._log_stamp:
            self._log_stamp = stamp
            lines = read_log(self._directory)
            self._logged = {
                "log_line": web_pages.log_line(lines),
                "log": _lines(web_pages.log(lines)),
            }
        return self._logged

    def _lacks(self, status: dict[str, Any] | None) -> bool:
        if status is None or self._failed:
            return False
        return int(status["workload"]) >= len(self._report.get("charts", ()))

    def _draw(self) -> None:
        """Build the report's part of the document, and set when it may be built again.

        If that fails, the previous part stays; the first failure is logged.
        """
        began = time.thread_time()
        try:
            self._report = _report(self._directory)
        except Exception:
            if not self._failed:
                LOG.warning("the live view shows no new charts", exc_info=True)
            self._failed = True
        took_s, self._first = 0.0 if self._first else time.thread_time() - began, False
        self._next_s = time.monotonic() + took_s / SHARE


@dataclass(frozen=True, kw_only=True)
class FirstLook:
    """The parts of a running run's page as it is first sent: HTML, and the run's results so far.

    Later changes come by the run's feed.
    """

    line: str
    now: str
    failures: str
    log_line: str
    log: str
    #: Results so far, None if there is nothing to report yet.
    facts: RunFacts | None

    @property
    def workloads(self) -> int:
        """Return the number of workloads that the report shows."""
        return len(self.facts.report.workloads) if self.facts else 0


def first_look(directory: RunDirectory) -> FirstLook:
    """Read a running run's directory and return the parts of its page."""
    status, lines = directory.read("status.json"), read_log(directory)
    return FirstLook(
        line=state_line(status, running=True, summary=None),
        now=web_pages.now(status),
        failures=web_pages.failures(status),
        log_line=web_pages.log_line(lines),
        log=web_pages.log(lines),
        facts=read_facts(directory) if _stamp(directory, TIMELINE) != _MISSING else None,
    )


class ListDocument:
    """The live document of the list of runs: its feed calls this object for the present state."""

    def __init__(self, shown: RunsShown) -> None:
        self._shown = shown

    def __call__(self) -> dict[str, Any]:
        """Return the document of the list: HTML lines of the newest runs, and counts in words."""
        rows, total = self._shown.newest()
        return {
            "line": list_line(rows, total, self._shown.trouble),
            "begun": True,
            "list": _lines(web_pages.rows(rows, total)),
            OVER: False,
        }


def list_line(rows: list[dict[str, Any]], total: int, trouble: str = "") -> str:
    """Return the number of all runs and of running runs as text, such as "3 runs, 1 running".

    `rows`: the runs that are shown; only running ones among them are counted. `total`: number of
    all runs. `trouble`: appended, why an archive's runs may be missing; "" if none are.
    """
    running = sum(row["state"] == RUNNING for row in rows)
    runs = "1 run" if total == 1 else f"{total:,} runs"
    return f"{runs}, {running} running{f'; {trouble}' if trouble else ''}"


def state_line(
    status: dict[str, Any] | None, *, running: bool, summary: dict[str, Any] | None
) -> str:
    """Return the state of a run in a few words: phase and time if `running`, else its exit code.

    If a running run has written no status for `QUIET_S` seconds, that is added. `status`,
    `summary`: contents of status.json and summary.json; None if there is no such file.
    """
    if running:
        if status is None:
            return "preparing"
        line = f"{status['phase']}, {status['elapsed_s']:.0f} s"
        quiet_s = time.time() - status.get("at", math.inf)
        return f"{line}, no news for {quiet_s:.0f} s" if quiet_s >= QUIET_S else line
    if summary is None:
        return "the run has ended without a report"
    return f"the run has ended with exit code {summary['exit_code']}"


def _report(directory: RunDirectory) -> dict[str, Any]:
    try:
        facts = read_facts(directory)
    except UsageError:
        # it ended before it had begun
        return {}
    overview, charts = report_views.parts(facts)
    for chart in charts:
        chart["html"] = {name: _lines(html) for name, html in chart.get("html", {}).items()}
    return {"overview": _lines(overview), "charts": charts}


def _lines(html: str) -> list[str]:
    """Split HTML into lines, most of which are equal from one document to the next."""
    return html.split("\n")


def _stamp(directory: RunDirectory, name: str) -> tuple[int, int]:
    """Return modification time (ns) and size (bytes) of a file, or `_MISSING`."""
    try:
        found = (directory.path / name).stat()
    except FileNotFoundError:
        return _MISSING
    return found.st_mtime_ns, found.st_size
