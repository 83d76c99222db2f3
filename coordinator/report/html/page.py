"""Renders the HTML report of a run, as a file or live, and the data that updates a live page."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from osbench.common.secrets.url_masking import mask_url
from osbench.common.text.escaping import escaped_in_json, on_page
from osbench.coordinator.report.action_order import SHOWN
from osbench.coordinator.report.html import page_assets, page_numbers
from osbench.coordinator.report.html.failure_lines import failures_of
from osbench.coordinator.report.html.iteration_table import IterationTable, table_of
from osbench.coordinator.report.html.latency_series import heat_table
from osbench.coordinator.report.html.overview_view import OverviewView, overview_of
from osbench.coordinator.report.html.page_assets import PageFrame
from osbench.coordinator.report.html.run_details import RunHead, run_details, run_head
from osbench.coordinator.report.html.section_order import (
    Emphasis,
    emphasis_of,
    overview_blocks,
    run_emphasis,
    workload_blocks,
)
from osbench.coordinator.report.html.slow_reasons import WhyView, explanations_of, why_of
from osbench.coordinator.report.html.time_charts import payload
from osbench.coordinator.report.html.workload_facts import WorkloadFacts, workloads_of
from osbench.coordinator.report.html.workload_view import ACTIONS, WorkloadView, view_of
from osbench.coordinator.report.page_facts import PageFacts
from osbench.coordinator.report.page_part import PagePart

_PERCENTILES = (
    ("p50", "p50"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p99.9", "p999"),
    ("max", "max"),
)
#: Parts of a workload's section that the live view replaces, and their templates.
_LIVE_PARTS = {
    "lede": "lede.j2",
    "marks": "marks.j2",
    "times": "times.j2",
    "criteria-part": "criteria.j2",
    "errors-part": "errors.j2",
    "tables": "tables.j2",
}


def render_page(facts: PageFacts, frame: PageFrame | None = None) -> str:
    """Return the page of a run as one HTML file or, with a `frame`, as a page of the web server.

    The same facts give the same bytes.
    """
    return PageViews.of(facts).page(facts, frame)


def live_parts(facts: PageFacts) -> tuple[str, list[dict[str, Any]]]:
    """Return the changing parts of a live page: HTML of its element `overview`, and charts.

    The charts are a list with a mapping per workload: numbers for the script and, under `html`,
    other parts of its section by element id.
    """
    page = PageViews.of(facts)
    context = page.context()
    templates = {
        **_LIVE_PARTS,
        **{at: name for part in facts.parts.values() for at, name in part.LIVE.items()},
    }
    charts = []
    for view, numbers in zip(page.views, page.payloads, strict=True):
        html = {
            f"{view.facts.anchor}-{part}": template_of(name).render(context, m=view)
            for part, name in templates.items()
        }
        charts.append({**numbers, "html": html})
    return template_of("overview.j2").render(context), charts


@dataclass(frozen=True, kw_only=True)
class PageViews:
    """All views of one page: the values from which its templates are rendered."""

    live: bool
    head: RunHead
    workloads: Sequence[WorkloadFacts]
    views: Sequence[WorkloadView]
    overview: OverviewView
    parts: Mapping[str, PagePart]
    why: WhyView
    #: Emphasis of the run, and of each of its workloads.
    emphasis: Emphasis
    emphases: list[Emphasis]
    payloads: list[dict[str, Any]]
    table: IterationTable | None

    @classmethod
    def of(cls, facts: PageFacts) -> PageViews:
        """Compute all views of a run; a live page has neither table nor reasons of slowness."""
        workloads, first = workloads_of(facts), facts.first_outputs
        views = [view_of(one, first.get(one.number, {})) for one in workloads]
        explanations = {} if facts.live else explanations_of(workloads, facts.parts.values())
        why = why_of(workloads, explanations)
        has_run = any(one.report.ran for one in workloads)
        emphases = [
            emphasis_of(one.report, has_cause=one.number in why.by_workload) for one in workloads
        ]
        return cls(
            live=facts.live,
            head=run_head(facts),
            workloads=workloads,
            views=views,
            overview=overview_of(facts, views),
            parts=facts.parts,
            why=why,
            emphasis=run_emphasis(facts, emphases),
            emphases=emphases,
            payloads=[payload(one.facts, one.charts, one.criteria) for one in views],
            table=table_of(facts, _anchors_by_trace(facts.parts))
            if has_run and not facts.live
            else None,
        )

    @property
    def titles(self) -> list[str]:
        """Titles of the workloads, in the order of the task."""
        return [one.title for one in self.workloads]

    def page(self, facts: PageFacts, frame: PageFrame | None = None) -> str:
        """Return the page as HTML; see `render_page`. `facts`: the facts that the views show."""
        data: dict[str, Any] = {"workloads": self.payloads, "names": self.titles}
        if not self.live:
            data["table"] = self.table.columns if self.table else None
            data["outputs"] = [
                {"anchor": one.anchor, "figure": one.figure, "series": one.series}
                for view in self.views
                for one in view.outputs
                if one.figure
            ]
        return template_of("report.html.j2").render(
            self.context()
            | {
                "frame": frame,
                # osbench's own, and no word of a run in them
                "policy": Markup(page_assets.policy(self.live)),  # noqa: S704
                "style": Markup(page_assets.style()),  # noqa: S704
                "scripts": list(map(Markup, page_assets.scripts(self.live))),
                "data": _embedded_json(data),
                "about": run_details(facts, self.workloads),
            }
        )

    def context(self, page: str = "", mark: str = "") -> dict[str, Any]:
        """Return the variables that all templates may use, by name.

        On a page of several runs, `page` is the address of this run's own report, to which links
        lead, and `mark` the prefix of its anchors. "" otherwise.
        """
        shown = _anchors_by_trace(self.parts)
        return {
            "NB": page_numbers.NARROW,
            "live": self.live,
            "page": page,
            "mark": mark,
            "run": self.head,
            "views": self.views,
            "overview": self.overview,
            "parts": self.parts,
            "sections": [one for one in self.parts.values() if one.SECTION],
            "over_time": [one.OVER_TIME for one in self.parts.values() if one.OVER_TIME],
            "failures": failures_of(self.views, shown),
            "why": self.why,
            "emphases": self.emphases,
            "overview_blocks": overview_blocks(self.emphasis),
            "workload_blocks": [workload_blocks(one) for one in self.emphases],
            "traced": 0 if self.live else _traced_count(self.workloads),
            "shown_traces": shown,
            "examples": [one["examples"] for one in self.payloads],
            "heat_tables": [] if self.live else [heat_table(one.charts.heat) for one in self.views],
            "table": self.table,
            "table_rows": SHOWN,
            "most_rows": ACTIONS,
            "percentile_names": _PERCENTILES,
        }


def _anchors_by_trace(parts: Mapping[str, PagePart]) -> dict[str, str]:
    return {trace: anchor for part in parts.values() for trace, anchor in part.anchors().items()}


def _traced_count(workloads: Sequence[WorkloadFacts]) -> int:
    found = [one.report.tracing for one in workloads]
    return sum(one.traced for one in found)


def _embedded_json(document: Mapping[str, Any]) -> Markup:
    """Return the document as JSON that is safe inside a script element of HTML."""
    packed = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    packed = escaped_in_json(packed).replace("<", "\\u003c")
    return Markup(packed)  # noqa: S704  # escaped for its place


@functools.cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(page_assets.template)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        finalize=on_page,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "time": page_numbers.time_text,
        "times": page_numbers.time_markup,
        "plain": page_numbers.plain_number,
        "seconds": lambda value: None if value is None else value / 1e3,
        "milliseconds": lambda value: page_numbers.time_text(
            None if value is None else value / 1e3
        ),
        "limit": page_numbers.limit_text,
        "whole": page_numbers.whole,
        "short": page_numbers.short,
        "percent": page_numbers.percent_text,
        "size": page_numbers.size_text,
        "instant": page_numbers.instant_s,
        "sentence": lambda sentence: page_numbers.spaced_text(mask_url(str(sentence))),
    }
    return environment


def template_of(name: str) -> jinja2.Template:
    """Return the template of the page with this file name; compiled templates are cached."""
    return _environment().get_template(name)
