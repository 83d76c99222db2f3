"""Renders the pages of the web server that are not reports: list of runs, live bar, messages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup

from osbench.common.text.escaping import on_page
from osbench.coordinator.formatting import count, duration, three_digits
from osbench.coordinator.front.web.run_list import USUAL, ListChoice, zone
from osbench.coordinator.front.web.trail_charts import SIZE, trail_charts
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.results.storage.progress import (
    HOT_CPU,
    ODD_STATES,
    STALE_S,
    done_words,
    worker_title,
)
from osbench.coordinator.results.storage.run_log import LEVELS, LogLine, last_lines

#: Templates, style sheet and script.
ASSETS = Path(__file__).parent / "assets"
#: Rows of workers that are shown for a workload, and kinds of failure of all workloads.
WORKERS = 40
FAILURES = 10
#: Last lines of a log that are shown; half as many warnings and errors before them.
LOG_LINES = 200
_GRAVE = {"WARNING": "warning", "ERROR": "error"}

#: Our own files and the address of this server; no script or style in the page but by hash.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        finalize=on_page,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


@cache
def static(name: str) -> str:
    """Return the text of a style sheet or a script in `ASSETS`; cached.

    Before a style sheet's own rules stand the colours of the report.
    """
    text = (ASSETS / name).read_text(encoding="utf-8")
    return page_assets.colours() + text if name.endswith(".css") else text


def render(name: str, **values: Any) -> str:
    """Return the HTML of a template in `ASSETS`, filled with `values`, which are escaped."""
    return _environment().get_template(name).render(values)


def markup(text: str) -> Markup:
    """Mark HTML, such as the result of `render`, as safe: templates do not escape it."""
    return Markup(text)  # noqa: S704 - it was escaped when it was rendered


def now(status: Mapping[str, Any] | None) -> str:
    """Return a run's current state as HTML: figures of each workload under load, and its workers.

    `status`: content of status.json; if None, "" is returned.
    """
    if status is None:
        return ""
    loads = [status, *status.get("beside", ())]
    return render(
        "now.html.j2",
        loads=[_load(one) for one in sorted(loads, key=lambda one: one["workload"])],
        away=next((one["away"] for one in loads if one["away"]), ""),
        since=_since(status.get("at")),
        size=SIZE,
    )


def failures(status: Mapping[str, Any] | None) -> str:
    """Return an HTML table of the kinds of failure of the workloads under load, by frequency.

    At most `FAILURES` rows. `status`: content of status.json; None if there is none.
    """
    loads = [status, *status.get("beside", ())] if status is not None else []
    found = [(one, kind) for one in loads for kind in one.get("failures", ())]
    found.sort(key=lambda pair: -pair[1]["count"])
    kinds = sum(one.get("failure_kinds", 0) for one in loads)
    return render(
        "failures.html.j2",
        several=len({one["workload"] for one, _ in found}) > 1,
        placed=any(kind["step"] for _, kind in found),
        answered=any(kind["status"] for _, kind in found),
        rows=[_kind(one, kind) for one, kind in found[:FAILURES]],
        more=count(kinds - FAILURES, "kind") if kinds > FAILURES else "",
    )


def _kind(one: Mapping[str, Any], kind: Mapping[str, Any]) -> dict[str, Any]:
    ran = one["ok"] + one["failed"]
    return {
        "name": one.get("title") or one["name"],
        "count": count(kind["count"]),
        "share": f"{kind['count'] / ran:.1%}" if ran else "",
        "step": kind["step"],
        "status": kind["status"] or "",
        "type": kind["type"],
        "message": kind["message"],
    }


def log(lines: Sequence[LogLine]) -> str:
    """Return a run's log as HTML: the last `LOG_LINES` lines, and warnings and errors before them.

    Of the latter at most `LOG_LINES` // 2.
    """
    shown = last_lines(lines, LOG_LINES, LOG_LINES // 2)
    return render(
        "log.html.j2",
        lines=[
            {
                "at": time.strftime("%H:%M:%S", time.gmtime(line.at)),
                "level": line.level.lower(),
                "rank": LEVELS.index(line.level),
                "source": line.source,
                "text": line.text,
            }
            for line in shown
        ],
    )


def log_line(lines: Sequence[LogLine]) -> str:
    """Return the numbers of lines, warnings and errors of a log in words, or "nothing yet"."""
    if not lines:
        return "nothing yet"
    levels = Counter(line.level for line in lines)
    parts = [count(len(lines), "line")]
    parts += [count(levels[name], word) for name, word in _GRAVE.items() if levels[name]]
    return ", ".join(parts)


def _since(at: float | None) -> str:
    """Return `at` as UTC text if it is `STALE_S` seconds ago or more, else ""."""
    if at is None or time.time() - at < STALE_S:
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _load(one: Mapping[str, Any]) -> dict[str, Any]:
    rows = one.get("rows", ())
    shown = rows
    if len(rows) > WORKERS:
        # what needs to be looked at comes first
        shown = sorted(rows, key=lambda row: (row["state"] not in ODD_STATES, -row["cpu"]))
    return {
        "number": one["workload"],
        "name": one.get("title") or one["name"],
        # open loads have response times
        "open": one.get("latency") == "response",
        "phase": one["phase"],
        "longest": one.get("longest", ""),
        "awaited": one.get("awaited", ""),
        "figures": _figures(one),
        "charts": trail_charts(one.get("trail", ()), one.get("latency", "service")),
        "sla": one.get("sla", ()),
        "rows": [_row(row) for row in shown[:WORKERS]],
        "more": count(len(rows) - WORKERS, "worker") if len(rows) > WORKERS else "",
        "workers": _workers(rows),
        "odd": any(row["state"] in ODD_STATES for row in rows),
    }


def _figures(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("done", done_words(one).removesuffix(" done")),
        ("per second", three_digits(one.get("rate", 0.0))),
        ("failed", count(one["failed"])),
        *((name, duration(one.get(f"{name}_s"))) for name in ("p50", "p95", "p99")),
        ("in flight", count(one["busy"])),
        ("p99 start lag", duration(one.get("lag_p99_s"))),
    ]


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": worker_title(row["name"], row["label"]),
        "state": _state(row),
        "odd": row["state"] in ODD_STATES,
        "rate": three_digits(row["rate"]),
        "users": _users(row),
        "cpu": f"{row['cpu']:.0%}",
        "hot": row["cpu"] >= HOT_CPU,
        "host": "" if row.get("host_cpu") is None else f"{row['host_cpu']:.0%}",
        "lag": duration(row["lag_p99_s"]),
    }


def _users(row: Mapping[str, Any]) -> str:
    of = f"{count(row['busy'])} of {count(row['users'])}"
    # runs of older releases do not say what they are
    coroutines = row.get("coroutines")
    kind = "" if coroutines is None else " coroutines" if coroutines else " threads"
    return of + kind


def _state(row: Mapping[str, Any]) -> str:
    """Return the state of a worker in words, with the seconds for which it is silent."""
    silent_s = row.get("silent_s", 0)
    return f"{row['state']}, unheard for {silent_s:.0f} s" if silent_s else str(row["state"])


def _workers(rows: Sequence[Mapping[str, Any]]) -> str:
    states = Counter(str(row["state"]) for row in rows)
    parts = [f"{count(number)} {state}" for state, number in sorted(states.items())]
    return f"{count(len(rows), 'worker')}: {', '.join(parts)}" if rows else ""


def rows(found: Sequence[Mapping[str, Any]], total: int, choice: ListChoice = USUAL) -> str:
    """Return the HTML table of the runs `found`; `total`: number of all runs that fit the choice.

    `choice`: the search and order, which the table's head shows.
    """
    return render(
        "rows.html.j2",
        rows=found,
        more=total if total > len(found) else 0,
        heads=choice.heads(),
        query=urlencode({"q": choice.query}) if choice.query else "",
        usual=choice.is_usual,
        zone=zone(),
    )


def links(
    run: str = "", task: str = "", before: str = "", *, starts: bool = False, again: bool = False
) -> str:
    """Return HTML links to the list and, with `starts`, to the form that starts runs.

    Of the run `run` also to its task's runs, its trend and a comparison. `task`: title of its task;
    `before`: id of the run to compare with; "" for no such link. `again`: also to the form that
    starts the run again.
    """
    place = {"run": run, "task": task, "before": before, "query": urlencode({"q": task})}
    return render("links.html.j2", starts=starts, again=again, **place)


def message(title: str, text: str, *, to_list: bool, bar: str = "") -> str:
    """Return a complete HTML page with a title and a text.

    `to_list`: with a link to the list of runs. `bar`: HTML above the text; with it the page is
    live.
    """
    return render(
        "message.html.j2",
        title=title,
        text=text,
        list=to_list,
        bar=markup(bar),
        live=bool(bar),
    )
