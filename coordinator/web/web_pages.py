"""The pages of the web server that are not the report: list of runs, bar, messages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup

from osbench.common.escaping import on_page
from osbench.coordinator.formatting import count, duration, three_digits
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.storage.progress import (
    HOT_CPU,
    ODD_STATES,
    STALE_S,
    done_words,
    worker_title,
)
from osbench.coordinator.web.run_list import USUAL, ListChoice, zone

#: Templates, style sheet and script.
ASSETS = Path(__file__).parent / "assets"
#: Rows of workers that are shown for a workload.
WORKERS = 40

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
    """A style sheet or a script; the style sheet after the colours of the report."""
    text = (ASSETS / name).read_text(encoding="utf-8")
    return page_assets.colours() + text if name.endswith(".css") else text


def render(name: str, **values: Any) -> str:
    """A template with values, which are escaped."""
    return _environment().get_template(name).render(values)


def markup(text: str) -> Markup:
    """What `render` has made, to be put into another template as it is."""
    return Markup(text)  # noqa: S704 - it was escaped when it was rendered


def now(status: Mapping[str, Any] | None) -> str:
    """What a run is doing, as status.json has it: a table of workloads and their workers."""
    if status is None:
        return ""
    loads = [status, *status.get("beside", ())]
    return render(
        "now.html.j2",
        loads=[_load(one) for one in sorted(loads, key=lambda one: one["workload"])],
        away=next((one["away"] for one in loads if one["away"]), ""),
        since=_since(status.get("at")),
    )


def _since(at: float | None) -> str:
    """When figures were written that are not those of now; "" where they are."""
    if at is None or time.time() - at < STALE_S:
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _load(one: Mapping[str, Any]) -> dict[str, Any]:
    rows = one.get("rows", ())
    return {
        "number": one["workload"],
        "name": one["name"],
        # response times are those of open loads
        "open": one.get("latency") == "response",
        "phase": one["phase"],
        "longest": one.get("longest", ""),
        "done": done_words(one),
        "rate": three_digits(one.get("rate", 0.0)),
        "failed": count(one["failed"]),
        "busy": count(one["busy"]),
        "lag": duration(one.get("lag_p99_s")),
        **{name: duration(one.get(f"{name}_s")) for name in ("p50", "p95", "p99")},
        "sla": one.get("sla", ()),
        "rows": [_row(row) for row in rows[:WORKERS]],
        "more": count(len(rows) - WORKERS, "worker") if len(rows) > WORKERS else "",
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": worker_title(row["name"], row["label"]),
        "state": row["state"],
        "odd": row["state"] in ODD_STATES,
        "rate": three_digits(row["rate"]),
        "users": f"{count(row['busy'])} of {count(row['users'])}",
        "cpu": f"{row['cpu']:.0%}",
        "hot": row["cpu"] >= HOT_CPU,
        "lag": duration(row["lag_p99_s"]),
    }


def rows(found: Sequence[Mapping[str, Any]], total: int, choice: ListChoice = USUAL) -> str:
    """The table of runs, of which there are so many."""
    return render(
        "rows.html.j2",
        rows=found,
        more=total if total > len(found) else 0,
        heads=choice.heads(),
        query=urlencode({"q": choice.query}) if choice.query else "",
        usual=choice.is_usual,
        zone=zone(),
    )


def links(run: str, task: str, before: str) -> str:
    """The way from a run to the list, to those of its task, and to the one before it ("")."""
    query = urlencode({"q": task})
    return render("links.html.j2", run=run, task=task, before=before, query=query)


def message(title: str, text: str, *, to_list: bool, bar: str = "") -> str:
    """A page with a sentence."""
    return render(
        "message.html.j2",
        title=title,
        text=text,
        list=to_list,
        bar=markup(bar),
        live=bool(bar),
    )
