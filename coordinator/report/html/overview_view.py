"""Makes the first screen of the page: verdict, at most four reasons, key figures, accounting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from osbench.common.secrets.url_masking import mask_url
from osbench.common.values.outcomes import STATES
from osbench.coordinator.report.html.criterion_rows import CriterionRow
from osbench.coordinator.report.html.inline_graphics import stacked_bar
from osbench.coordinator.report.html.key_figures import Figure, key_figures
from osbench.coordinator.report.html.page_numbers import (
    counted_noun,
    limit_text,
    short,
    spaced_text,
    time_text,
    whole,
)
from osbench.coordinator.report.html.workload_view import WorkloadView
from osbench.coordinator.report.model.model import CRASHED, FINISHED, RUNNING
from osbench.coordinator.report.page_facts import PageFacts
from osbench.coordinator.report.severity import MANY, has_held, severity
from osbench.coordinator.results.accounting.totals import Bound

_REASONS = 4
_NOT_OK = STATES[1:]


@dataclass(frozen=True, kw_only=True)
class VerdictWords:
    """The verdict line of the page in parts: colour, sign, word and text."""

    #: "", ok or warned: the colour of its border.
    look: str
    sign: str
    word: str
    #: Text in bold, and text behind it.
    strong: str = ""
    rest: str = ""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A message below the verdict on a workload or the run, in bold and plain parts."""

    #: ok, warn or err.
    look: str
    strong: str
    rest: str
    #: Anchor of the workload that it is about.
    anchor: str = ""


@dataclass(frozen=True, kw_only=True)
class AccountingView:
    """Numbers of iterations by final state, over all workloads of a run, with bars."""

    planned: int
    counts: dict[str, int]
    bad: int
    bar: Markup
    lens: Markup
    #: Begin of the part that is not ok, percent.
    cut: float


@dataclass(frozen=True, kw_only=True)
class FigureRow:
    """The key figures of a workload, as a row of the first screen."""

    view: WorkloadView
    figures: list[Figure]


@dataclass(frozen=True, kw_only=True)
class OverviewView:
    """The first screen of the page: verdict, reasons, key figures and accounting."""

    verdict: VerdictWords
    reasons: list[Reason]
    #: The worst workload first; if there are many, the successful ones are in `held`.
    rows: list[FigureRow]
    held: list[FigureRow]
    accounting: AccountingView
    #: The load time that the figures of a running run are of, in words; "" of others.
    as_of: str

    @property
    def heads(self) -> list[str]:
        """Names of the key figures, as heads of a table. Raises IndexError without workloads."""
        return [one.head for one in [*self.rows, *self.held][0].figures]

    @property
    def is_long(self) -> bool:
        """Return whether there are more than `MANY` workloads, so that each has one line."""
        return len(self.rows) + len(self.held) > MANY


def overview_of(facts: PageFacts, views: Sequence[WorkloadView]) -> OverviewView:
    """Return the first screen of a run; `views` are the views of its workloads.

    The worst workload comes first. Of more than `MANY`, the successful ones are in `held`.
    """
    ordered = sorted(views, key=lambda view: severity(view.report))
    running = facts.state == RUNNING
    rows = [FigureRow(view=view, figures=key_figures(view, running=running)) for view in ordered]
    is_many = len(rows) > MANY
    return OverviewView(
        verdict=_verdict(facts, views),
        reasons=_reasons(facts, views),
        rows=[row for row in rows if not (is_many and has_held(row.view.report))],
        held=[row for row in rows if is_many and has_held(row.view.report)],
        accounting=_accounting(views),
        as_of=_as_of(views) if running else "",
    )


def _verdict(facts: PageFacts, views: Sequence[WorkloadView]) -> VerdictWords:
    failed = [(view, row) for view in views for row in view.failed_criteria]
    total = sum(len(view.criteria) for view in views)
    code = facts.report.exit_code
    close = [row.criterion for view in views for row in view.criteria if row.ok and row.close]
    if facts.state == RUNNING:
        return _running(len(failed), total, close)
    if code == 2:
        said = _notes(facts, 1) or "The run could not make the requested load."
        return VerdictWords(look="", sign="✕", word="Not judged.", rest=said)
    if facts.state == CRASHED or code == 130 or (code == 3 and not failed):
        return _not_finished(facts)
    if failed:
        return _not_met(failed, total, len(views))
    return _met_words(total, code, _sum(views, "dropped"), close)


def _not_finished(facts: PageFacts) -> VerdictWords:
    code = facts.report.exit_code
    said = "Not every planned iteration was carried out."
    if code == 130:
        said = "The run was interrupted."
    elif facts.state == CRASHED:
        said = "The run did not come to its end."
    rest = spaced_text(mask_url(facts.reason)) if facts.reason else _notes(facts, 1)
    return VerdictWords(look="", sign="✕", word="Not finished.", strong=said, rest=rest)


def _every_met(total: int, close: Sequence[str], so_far: str = "") -> str:
    every = f"All {total} criteria are met" if total > 1 else "The one criterion is met"
    if not close:
        return f"{every}{so_far}."
    more = f" and {len(close) - 1} more" if len(close) > 1 else ""
    its = "their limits" if more else "its limit"
    return f"{every}{so_far}, but {close[0]}{more} may as well be over {its}."


def _met_words(total: int, code: Any, dropped: int, close: Sequence[str]) -> VerdictWords:
    every = _every_met(total, close) if total else "No criteria were set."
    if dropped and code != 4:
        said = f"{counted_noun(dropped, 'arrival')} {'was' if dropped == 1 else 'were'} dropped."
        word = "Met, but not for all of the load." if total else "Done, but not all of the load."
        return VerdictWords(look="warned", sign="!", word=word, strong=said, rest=every)
    word = "Met" if total else "Done"
    if code == 4:
        word = f"{word}, but the load was not the one requested."
        return VerdictWords(look="warned", sign="!", word=word, rest=every)
    return VerdictWords(look="ok", sign="✓", word=f"{word}.", rest=every)


def _running(failed: int, total: int, close: Sequence[str]) -> VerdictWords:
    if failed:
        strong = f"{failed} of {counted_noun(total, 'criterion', 'criteria')} not met so far."
        return VerdictWords(look="", sign="✕", word="Running.", strong=strong)
    every = _every_met(total, close, " so far") if total else ""
    return VerdictWords(look="ok", sign="▸", word="Running.", rest=every)


def _as_of(views: Sequence[WorkloadView]) -> str:
    if not views or not views[-1].facts.elapsed_s:
        return ""
    facts = views[-1].facts
    where = f" of {facts.title}" if len(views) > 1 else ""
    return f"Charts and tables show the first {limit_text(facts.elapsed_s)}{where}."


def _not_met(
    failed: Sequence[tuple[WorkloadView, Any]], total: int, workloads: int
) -> VerdictWords:
    titles = list(dict.fromkeys(view.facts.title for view, _ in failed))
    named = " and ".join(titles[:3]) + (" and others" if len(titles) > 3 else "")
    where = f", in {named}" if workloads > 1 else ""
    rows = [_words(row) for _, row in failed[:_REASONS]]
    more = f"; and {len(failed) - _REASONS} more" if len(failed) > _REASONS else ""
    return VerdictWords(
        look="",
        sign="✕",
        word="Not met.",
        strong=f"{len(failed)} of {counted_noun(total, 'criterion', 'criteria')} failed{where}:",
        rest="; ".join(rows) + more + ".",
    )


def _words(row: CriterionRow) -> str:
    if not row.asked:
        return f"{row.criterion}: {row.found}"
    colon = "" if row.found[:1].isdigit() else ":"
    return f"{row.criterion}{colon} {row.found} ({row.asked})"


def _notes(facts: PageFacts, most: int) -> str:
    return " ".join(spaced_text(mask_url(note)) for note in facts.report.notes[:most])


def _reasons(facts: PageFacts, views: Sequence[WorkloadView]) -> list[Reason]:
    code = facts.report.exit_code
    found = [_lateness_reason(view) for view in views if view.late_starts]
    found += [_bound_reason(view, bound) for view in views for bound in view.report.bounds]
    if code == 5 or (code == 4 and not any(view.report.bounds for view in views)):
        notes = [spaced_text(mask_url(note)) for note in facts.report.notes[:2]]
        found += [Reason(look="warn", strong="", rest=note) for note in notes]
    failed = any(view.failed_criteria for view in views)
    # many successful ones have one message
    if (failed or facts.state == FINISHED) and len(views) <= MANY:
        found += [
            _held_reason(view) for view in views if view.criteria and not view.failed_criteria
        ]
    lost = _sum(views, "lost")
    left = _sum(views, "not_started")
    end = [_missing(lost, left, code)] if (lost or left) and facts.state != RUNNING else []
    return [*found[: _REASONS - len(end)], *end]


def _bound_reason(view: WorkloadView, bound: Bound) -> Reason:
    said = spaced_text(mask_url(bound.sentence))
    look = "err" if bound.fault == "generator" else "warn"
    return Reason(look=look, strong="", rest=f"{view.facts.title}: {said}.")


def _lateness_reason(view: WorkloadView) -> Reason:
    facts = view.facts
    clean = facts.timeline.get("without_spoilt")
    starts = (
        f"{counted_noun(view.late_starts, 'start')} {'was' if view.late_starts == 1 else 'were'}"
    )
    who = (
        "A late generator affected"
        if view.report.is_generators
        else "Arrivals waited for users for"
    )
    rest = f"{starts} more than {time_text(facts.lag_limit_s, 1)} late."
    if clean:
        rest += (
            f" Without those stretches p95 is {time_text(clean['p95_s'])}"
            f" and p99 {time_text(clean['p99_s'])}."
        )
    return Reason(
        look="warn",
        strong=f"{who} {short(view.spoilt_s)} of {limit_text(facts.elapsed_s)} of {facts.title}",
        rest=rest,
        anchor=facts.anchor,
    )


def _held_reason(view: WorkloadView) -> Reason:
    rows = [_words(row) for row in view.criteria[:4]]
    every = f"all {len(view.criteria)}" if len(view.criteria) > 1 else "its one criterion"
    more = f", and {len(view.criteria) - 4} more" if len(view.criteria) > 4 else ""
    return Reason(
        look="ok", strong="", rest=f"{view.facts.title} met {every}: {', '.join(rows)}{more}."
    )


def _missing(lost: int, left: int, code: Any) -> Reason:
    parts = []
    if lost:
        verb = "was" if lost == 1 else "were"
        parts.append(f"{counted_noun(lost, 'iteration')} {verb} lost with a worker")
    if left:
        parts.append(f"{counted_noun(left, 'iteration')} did not start")
    end = f": exit code {code}." if code is not None else "."
    return Reason(look="err", strong="", rest=" and ".join(parts) + end)


def _sum(views: Sequence[WorkloadView], state: str) -> int:
    sums = [view.report.accounting for view in views]
    return sum(one.state(state) for one in sums)


def _accounting(views: Sequence[WorkloadView]) -> AccountingView:
    counts = {state: _sum(views, state) for state in STATES}
    sums = [view.report.accounting for view in views]
    planned = sum(one.planned for one in sums)
    bad = sum(counts[state] for state in _NOT_OK)
    known = counts["ok"] + bad
    lens = Markup("")
    # of a load that failed wholly it would be the same bar
    if bad and counts["ok"]:
        lens = stacked_bar(counts, _NOT_OK, f"{whole(bad)} not ok, magnified")
    return AccountingView(
        planned=planned,
        counts=counts,
        bad=bad,
        bar=stacked_bar(counts, label=f"{whole(counts['ok'])} of {whole(known)} ok"),
        lens=lens,
        cut=100 * counts["ok"] / known if known else 0.0,
    )
