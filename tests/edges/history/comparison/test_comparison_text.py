"""What `compare` and `trends` print."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from rich.console import Console

from helpers.queue_runs import compared_run
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_text import show_comparison, show_spread
from osbench.edges.history.comparison.evidence import Evidence

MS = 1_000_000


def runs(name: str, slower: float) -> list[ComparedRun]:
    """Five runs of a service, each a little slower than the one before."""
    at = np.arange(4000, dtype=np.int64) * 10 * MS
    times = (10 + np.arange(4000) * 7919 % 1000 / 50) * MS * slower
    found = []
    for number in range(5):
        values = (times * (1 + 0.004 * number)).astype(np.int64)
        parts = {"find": values // 4, "buy": values // 2}
        found.append(compared_run(f"{name}{number}", (at, values), actions=parts))
    return found


def test_a_comparison_looks_like_its_golden_file(golden: Callable[[str, str], None]) -> None:
    file = io.StringIO()
    console = Console(file=file, width=100)
    before, after = runs("A", 1.0), runs("B", 1.1)
    after[4].summary["workloads"][0]["accounting"].update(lost=3, failed=2)

    evidence = Evidence(before=before, after=after)
    show_comparison(compare_sides(evidence, names=("old", "new"), anyway=True), console)
    show_spread(before, console)

    lines = file.getvalue().splitlines()
    golden("compare.txt", "".join(f"{line.rstrip()}\n" for line in lines))
