"""Documents of the live view's feeds: of one run, or of the list of runs."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import UsageError
from osbench.coordinator.report.model.model import RUNNING
from osbench.coordinator.report.run_facts import RunFacts, read_facts
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.run_documents import TIMELINE
from osbench.coordinator.storage.run_log import LOG as RUN_LOG
from osbench.coordinator.storage.run_log import read_log
from osbench.coordinator.web import report_views, web_pages
from osbench.coordinator.web.feed import OVER
from osbench.coordinator.web.runs_shown import RunsShown

LOG = logging.getLogger(__name__)

#: The part of a core that drawing the report of a run that goes on may take: what takes longer is
#: drawn less often than each second. What the run is doing now is cheap, and always fresh.
SHARE = 0.01

#: A run that writes nothing for so long may be at an end, or in difficulties.
QUIET_S = 5.0

_MISSING = (0, 0)


class RunDocument:
    """The document of a run; the report's part is made anew when the run has written more."""

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
        """The run as it is now."""
        directory = self._directory
        # `run --web` serves a little before there is a run directory
        awaited = not directory.path.exists()
        running = awaited or directory.has_coordinator()
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
        """The part of the log; made anew when more was written."""
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
        """Whether a workload has begun that the report does not have: it may be over soon."""
        if status is None or self._failed:
            return False
        return int(status["workload"]) >= len(self._report.get("charts", ()))

    def _draw(self) -> None:
        """Make the report part anew; if that fails, the last one stays."""
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
    """A run that goes on, for its page."""

    line: str
    now: str
    failures: str
    log_line: str
    log: str
    #: Results so far, None if there is nothing to report yet.
    facts: RunFacts | None

    @property
    def workloads(self) -> int:
        """Workloads that the report shows."""
        return len(self.facts.report.workloads) if self.facts else 0


def first_look(directory: RunDirectory) -> FirstLook:
    """A run as it is when its page is opened."""
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
    """The document of the list of runs."""

    def __init__(self, shown: RunsShown) -> None:
        self._shown = shown

    def __call__(self) -> dict[str, Any]:
        """The newest runs."""
        rows, total = self._shown.newest()
        return {
            "line": list_line(rows, total, self._shown.trouble),
            "begun": True,
            "list": _lines(web_pages.rows(rows, total)),
            OVER: False,
        }


def list_line(rows: list[dict[str, Any]], total: int, trouble: str = "") -> str:
    """Return the number of runs, in words; `trouble`: the reason why there may be more."""
    running = sum(row["state"] == RUNNING for row in rows)
    runs = "1 run" if total == 1 else f"{total:,} runs"
    return f"{runs}, {running} running{f'; {trouble}' if trouble else ''}"


def state_line(
    status: dict[str, Any] | None, *, running: bool, summary: dict[str, Any] | None
) -> str:
    """The state of a run in a few words."""
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
    """Return the lines, for `json_delta`: from one second to the next most are the same."""
    return html.split("\n")


def _stamp(directory: RunDirectory, name: str) -> tuple[int, int]:
    """Return time of change and size of a file; `_MISSING` if it is not there."""
    try:
        found = (directory.path / name).stat()
    except FileNotFoundError:
        return _MISSING
    return found.st_mtime_ns, found.st_size
