"""Makes rows of the page from a workload's kinds of errors, with their counts over time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from osbench.common.secrets.masking import mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.error_kinds import ErrorKind, kinds_of
from osbench.coordinator.report.html.inline_graphics import SPARK_BINS, spark
from osbench.coordinator.report.html.page_numbers import time_text
from osbench.coordinator.report.html.workload_facts import WorkloadFacts

_TEXT = 20_000
#: Letters of the name of an exception class.
_NAME = 300
_FOLDERS = re.compile(r'File "/[^"\n]*?/(site-packages|osbench|python3\.\d+)/')


@dataclass(frozen=True, kw_only=True)
class ErrorRow:
    """A kind of error with an example, as a row of the page.

    `first_s` and `last_s` are due times after t0, `p50_s` the median time; None if not known.
    """

    type: str
    message: str
    count: int
    first_iteration: int | None
    traceback: str
    trace_id: str = ""
    iteration: int | None = None
    first_s: float | None = None
    last_s: float | None = None
    p50_s: float | None = None
    spark: Markup | str = ""


def error_rows(facts: WorkloadFacts) -> list[ErrorRow]:
    """Return a row for each kind of error, the most frequent first, with secrets masked."""
    kinds = kinds_of(facts.report.errors)
    of_type = Counter(one.error.type for one in kinds)
    examples = facts.timeline.get("error_examples") or {}
    # an example of a type says nothing of one of its kinds, if there are several
    return [
        _row(facts, one, (examples.get(one.error.type) if of_type[one.error.type] == 1 else None))
        for one in kinds
    ]


def _row(facts: WorkloadFacts, kind: ErrorKind, example: Mapping[str, Any] | None) -> ErrorRow:
    error, found = kind.error, example or {}
    first_s, last_s, counts = found.get("first_s"), found.get("last_s"), None
    times = facts.failed_s.get(kind.kind)
    if times is not None and len(times):
        first_s, last_s = float(times[0]), float(times[-1])
        counts = _counts_by_part(times, facts.elapsed_s)
    elif found:
        counts = _over_time(found, facts.elapsed_s)
    label = f"over the {time_text(facts.elapsed_s)} of the load"
    iteration = error.example_iteration
    return ErrorRow(
        type=plain(error.type, _NAME),
        message=mask_text(error.message)[:1000],
        count=error.count,
        first_iteration=error.first_iteration,
        traceback=_without_folders(error.traceback),
        trace_id=str(error.trace_id or found.get("trace_id") or ""),
        iteration=found.get("iteration") if iteration is None else iteration,
        first_s=first_s,
        last_s=last_s,
        p50_s=found.get("p50_s"),
        spark=spark(counts, label) if counts else Markup(""),
    )


def _without_folders(traceback: str) -> str:
    """Return a traceback without secrets and folders of installed files, cut to `_TEXT`.

    Reports are passed on, and folders may name people.
    """
    return mask_text(_FOLDERS.sub(r'File ".../\1/', traceback))[:_TEXT]


def _counts_by_part(times: NDArray[np.float64], elapsed_s: float) -> list[int]:
    """Return how many of `times` (s after t0) are in each of SPARK_BINS equal parts of the load.

    `elapsed_s`: length of the load.
    """
    places = np.clip(times / max(elapsed_s, 1e-9) * SPARK_BINS, 0, SPARK_BINS - 1).astype(int)
    counts: list[int] = np.bincount(places, minlength=SPARK_BINS).tolist()
    return counts


def _over_time(example: Mapping[str, Any], elapsed_s: float) -> list[int]:
    """Return how often an error occurred in each of SPARK_BINS equal parts of the load.

    `example` is an entry of the timeline's `error_examples`, `elapsed_s` the length of the load.
    """
    found = [0] * SPARK_BINS
    width_s = float(example.get("bin_s") or 0)
    for number, count in enumerate(example.get("counts") or ()):
        at = (number + 0.5) * width_s / max(elapsed_s, width_s, 1e-9)
        found[min(int(at * SPARK_BINS), SPARK_BINS - 1)] += count
    return found
