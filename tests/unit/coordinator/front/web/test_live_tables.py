"""The tables above a live report: failures so far, and workers in their states."""

from __future__ import annotations

import dataclasses
from typing import Any

from helpers.web import snapshot, worker_progress
from osbench.coordinator.front.web import web_pages
from osbench.coordinator.results.storage.progress import HOT_CPU, FailureProgress
from osbench.coordinator.results.storage.run_log import LogLine

HOSTILE = "</script><img src=x onerror=alert(1)>"


def failure(count: int = 3, **fields: Any) -> FailureProgress:
    """A kind of failure."""
    usual = {"type": "Refused", "message": "no more", "step": "buy", "status": 503}
    return FailureProgress(count=count, **{**usual, **fields})


def noted(**fields: Any) -> dict[str, Any]:
    """Content of status.json."""
    return {**dataclasses.asdict(snapshot(**fields)), "beside": []}


def test_failures_have_count_share_place_and_text() -> None:
    page = web_pages.failures(noted(ok=9, failed=3, failures=(failure(3),), failure_kinds=1))

    for part in (">3</td>", "25.0%", "buy", "503", "<b>Refused</b> no more", "first in step"):
        assert part in page
    assert "workload" not in page


def test_without_failures_there_is_no_table() -> None:
    older = {k: v for k, v in noted().items() if not k.startswith("failure")}

    assert [web_pages.failures(one) for one in (None, noted(), older)] == ["", "", ""]


def test_what_no_failure_has_is_no_column() -> None:
    page = web_pages.failures(noted(failures=(failure(step="", status=0),), failure_kinds=1))

    assert "step" not in page
    assert "status" not in page


def test_failures_of_several_workloads_are_in_one_order_and_bounded() -> None:
    several = tuple(failure(number, message=f"m{number}.") for number in range(10, 0, -1))
    status = noted(failures=several, failure_kinds=40)
    beside = noted(workload=1, name="C.d", failures=(failure(99),), failure_kinds=1)

    page = web_pages.failures({**status, "beside": [beside]})

    assert page.index("C.d") < page.index("A.b")
    assert "m2." in page
    assert "m1." not in page
    assert "And 31 kinds more" in page


def test_failures_of_hostile_services_stay_text() -> None:
    several = (failure(message=HOSTILE, type=HOSTILE, step=HOSTILE),)
    page = web_pages.failures(noted(name=HOSTILE, failures=several, failure_kinds=1))

    assert "<img" not in page


def test_workers_say_what_they_do() -> None:
    rows = (
        worker_progress(host_cpu=0.5),
        worker_progress("host-b:8", state="lost", silent_s=7.2, users=0, busy=0, coroutines=True),
        worker_progress("host-c:9", state="left"),
    )

    page = web_pages.now(noted(rows=rows))

    for part in ("lost, unheard for 7 s", "2 of 4 threads", "0 of 0 coroutines", "50%", ">left<"):
        assert part in page
    assert "workers: 1 left, 1 lost, 1 running" in page


def test_the_figures_of_a_workload_have_their_names_and_its_charts_their_lines() -> None:
    trail = [[1.0, 10.0, 0.1, 0.2], [2.0, 20.0, 0.1, 0.4]]
    status = {**noted(failed=7, p95_s=0.25, latency="response"), "trail": trail}

    page, early = web_pages.now(status), web_pages.now(noted())

    for part in (
        "<dt>done</dt><dd>40 of 100</dd>",
        '<div class="bad"><dt>failed</dt><dd>7</dd>',
        "<dt>p95</dt><dd>250ms</dd>",
        'aria-label="response time of the last seconds, from 0 to 400ms"',
        '<path class="p95" d="M0 40.0L600 1.0"/>',
        '<b class="p95">p95</b>',
    ):
        assert part in page
    assert "<svg" not in early


def test_a_worker_is_marked_from_a_share_of_a_core_on() -> None:
    cold, hot = (
        web_pages.now(noted(rows=(worker_progress(cpu=cpu),))) for cpu in (HOT_CPU - 0.01, HOT_CPU)
    )

    assert '<td class="care">89%' not in cold
    assert '<td class="care">90%' in hot


def test_of_very_many_workers_the_odd_ones_are_shown() -> None:
    rows = tuple(worker_progress(f"host-{number:03}:7") for number in range(200))
    lost = worker_progress("host-z:7", state="lost", silent_s=9.0)
    hot = worker_progress("host-y:7", cpu=0.99)

    page = web_pages.now(noted(rows=(*rows, hot, lost)))

    assert page.count("live-part") == web_pages.WORKERS + 1
    assert page.index("host-z") < page.index("host-y") < page.index("host-000")
    assert "and 162 workers" in page


def test_notes_of_older_releases_are_shown() -> None:
    row = dataclasses.asdict(worker_progress())
    for name in ("coroutines", "host_cpu", "silent_s"):
        del row[name]

    page = web_pages.now({**noted(), "rows": [row]})

    assert "2 of 4<" in page


def line(text: str, level: str = "INFO") -> LogLine:
    return LogLine(at=1_775_038_500.0, level=level, source="coordinator", text=text)


def test_the_log_is_bounded_and_hostile_lines_stay_text() -> None:
    lines = [line("old"), line("grave", "ERROR"), *(line(f"n{n}.") for n in range(300))]

    page = web_pages.log([*lines, line(HOSTILE, "WARNING")])

    assert page.count("<li") == web_pages.LOG_LINES + 1
    assert 'class="r3"' in page
    assert "grave" in page
    assert "old" not in page
    assert "n99." not in page
    assert "10:15:00" in page
    assert "<img" not in page


def test_the_line_above_the_log_counts_what_is_grave() -> None:
    lines = [line("a"), line("b", "WARNING"), line("c", "WARNING"), line("d", "ERROR")]

    assert web_pages.log_line([]) == "nothing yet"
    assert web_pages.log_line(lines[:1]) == "1 line"
    assert web_pages.log_line(lines) == "4 lines, 2 warnings, 1 error"
