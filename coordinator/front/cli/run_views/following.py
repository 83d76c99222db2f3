"""Follows a run, whose coordinator is another process, to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.coordinator.formatting import count, plain, spaced, three_digits
from osbench.coordinator.report.exporting import LOST
from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.progress import done_words, left_words, longest_words
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import summary_of

#: Between two looks at a run, seconds.
LOOK_S = 0.5


def await_end(directory: RunDirectory) -> None:
    """Wait until no coordinator holds the run, without a limit."""
    while directory.has_coordinator():
        time.sleep(LOOK_S)


def progress(directory: RunDirectory) -> Iterator[dict[str, Any]]:
    """Yield the progress notes of a run (content of status.json), until it has ended.

    Yields a note when it is new, about once per second, and none once no coordinator holds the run.
    Raises OsbenchError if the file cannot be read.
    """
    seen_at = None
    running = True
    while running:
        # looked at first: what is noted last is read in any case
        running = directory.has_coordinator()
        note = directory.read("status.json")
        if note is not None and running and note.get("at") != seen_at:
            seen_at = note.get("at")
            yield note
        if running:
            time.sleep(LOOK_S)


def exit_code(directory: RunDirectory) -> int:
    """Return the exit code of a run that is over; for damaged files that of the error.

    `LOST` if none was noted, as after a killed coordinator or an unforeseen exception.
    """
    try:
        summary = summary_of(directory)
        code = summary["exit_code"] if summary is not None else failure.exit_code(directory)
    except OsbenchError as error:
        return error.exit_code
    return LOST if code is None else int(code)


def lines(note: Mapping[str, Any]) -> list[str]:
    """Return a progress note as lines of text, a line for each workload under load."""
    return [_line(one) for one in (note, *note.get("beside", ()))]


def _line(one: Mapping[str, Any]) -> str:
    begin = f"[{one['elapsed_s']:6.1f} s] {plain(one['name'])} {plain(one['phase'])}: "
    text = f"{begin}{done_words(one)}{left_words(one)}"
    if one["workload"] < 0:
        return text
    away = f", unreachable: {plain(one['away'])}" if one["away"] else ""
    failed = one.get("start_failures", 0)
    starts = f", {count(failed, 'start')} of users failed" if failed else ""
    recently, longest = _recently(one.get("recent")), plain(longest_words(one))
    return f"{text}, {count(one['busy'])} in flight{starts}{away}{recently}{longest}"


def _recently(recent: Mapping[str, Any] | None) -> str:
    if recent is None:
        return ""
    failed = f"{count(recent['failed'])} failed"
    if recent["failed"]:
        failed += f" ({recent['failed_share']:.1%}), most with {plain(recent['error'], 120)}"
    return (
        f"; last {recent['span_s']:.0f} s: {three_digits(recent['rate'])}/s,"
        f" p50 {spaced(recent['p50_s'])}, p95 {spaced(recent['p95_s'])}, {failed}"
    )
