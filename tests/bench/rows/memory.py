"""How much the coordinator grows from a million iterations to ten million."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import Stage

NEEDS = ()

FEW, MANY = 10**6, 10**7


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Resident memory, with 1 % failures at random."""
    values = interleave({"osbench": lambda: {"growth": _growth(stage)}}, stage.rounds, say)
    return [
        Comparison(
            row="memory",
            title="growth of the coordinator from 10^6 to 10^7 iterations, 1 % failures",
            unit="MB",
            osbench=values["growth"],
            target=Target(bound=5.0, at_most=True),
        )
    ]


def _growth(stage: Stage) -> float:
    found = stage.harness("memory", FEW, MANY)
    return float(found[str(MANY)] - found[str(FEW)]) / 1e6
