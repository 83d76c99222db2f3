"""Hooks, contexts and outputs as lines of the text report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain

#: Charts that are described; the JSON object has all.
CHARTS = 10
#: Of outputs that are in no chart: key, and what one of them is.
_CUT = (
    ("charts", "item of too many charts", "items of too many charts"),
    ("values", "value of too many names", "values of too many names"),
    ("malformed", "value that is no number", "values that are no number"),
    ("not_additive", "item that cannot be added up", "items that cannot be added up"),
    ("too_large", "output or error too large", "outputs or errors too large"),
)

Line = tuple[str, Text]


def hook_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a hook: how its firings ended, and why the first bad one did."""
    label = "hooks"
    for hook in workload["hooks"]:
        (name,), (trigger,) = hook["action"], hook["trigger"]
        counts = hook["summary"]
        ended = ", ".join(f"{count(n)} {status.replace('_', ' ')}" for status, n in counts.items())
        bad = [result for result in hook["results"] if "error" in result]
        text = Text(f"{plain(name)} by {plain(trigger)}: {ended or 'did not fire'}")
        if bad:
            text.append(f"; {plain(bad[0]['error']['msg'])}", style="bold red")
        yield label, text
        label = ""


def context_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a context: how long it was set up and undone, or why it was not."""
    label = "contexts"
    # runs of older releases have none
    for context in workload.get("contexts", ()):
        text = Text(plain(context["name"]))
        for step, done in (("setup", "set up"), ("cleanup", "undone")):
            found = context[step]
            if found is None:
                text.append(f", not {done}", style="bold red")
            elif found["error"] is None:
                text.append(f", {done} in {duration(_span_s(found))}")
            else:
                text.append(f", not {done}: {plain(found['error']['msg'])}", style="bold red")
        yield label, text
        label = ""


def _span_s(step: Mapping[str, Any]) -> float:
    begun, ended = (datetime.fromisoformat(step[key]) for key in ("started_at", "finished_at"))
    return (ended - begun).total_seconds()


def output_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    """A line a chart that was not added up, and what was left out."""
    found = outputs(workload)
    texts = [
        f"{plain(chart['title'])} ({plain(chart['chart_plugin'])}) of "
        f"{count(chart['iterations'], 'iteration')}, the first {count(chart['first_iteration'])}"
        for chart in found["complete"]
    ]
    more = max(0, len(texts) - CHARTS) + max(0, len(found["additive"]) - CHARTS)
    texts = [*texts[:CHARTS], *([f"{count(more, 'more chart')}"] if more else [])]
    cut = [count(found["cut"][key], one, many) for key, one, many in _CUT if found["cut"][key]]
    texts += [f"left out: {', '.join(cut)}"] if cut else []
    for label, text in zip(["outputs", *[""] * len(texts)], texts, strict=False):
        yield label, Text(text)


def outputs(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The charts of a workload's object; runs of older releases have none."""
    nothing = {"additive": [], "complete": [], "cut": dict.fromkeys((key for key, *_ in _CUT), 0)}
    found: Mapping[str, Any] = workload.get("outputs", nothing)
    return found
