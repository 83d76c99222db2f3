"""How often comparisons of runs say what is so, for runs whose differences are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from helpers.queue_runs import compared_run
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_result import ComparisonResult
from osbench.edges.history.comparison.evidence import Evidence, numbered_blocks

Floats = NDArray[np.float64]
Random = np.random.Generator
#: Logarithms of factors of the runs of both sides.
Factors = Callable[[Random, int], tuple[Floats, Floats]]

COMPARISONS = 400
#: Share of comparisons of equal services that may name a change, and standard errors of chance.
_FALSE, _ERRORS = 0.05, 3.0
_WORDS = ("worse", "better", "mixed", "no evidence")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Two sides of runs."""

    name: str
    factors: Factors
    pareto: bool = False
    #: The two sides took turns.
    in_pairs: bool = False
    #: Runs of each block, if the second side was made after a change in blocks.
    block: int = 0
    #: Shares of comparisons that find the change, at least and at most, by runs a side; a
    #: change that is none is found by mistake.
    found: dict[int, tuple[float, float]]


def spread(by: float = 0.02, other: float | None = None, slower: float = 1.0) -> Factors:
    """Runs that differ by a share anyway; those of the second side may by another one."""

    def factors(random: Random, runs: int) -> tuple[Floats, Floats]:
        second = random.normal(0, by if other is None else other, runs) + math.log(slower)
        return random.normal(0, by, runs), second

    return factors


def one_odd(slower: float = 1.0) -> Factors:
    """One run of the second side takes half as long again."""

    def factors(random: Random, runs: int) -> tuple[Floats, Floats]:
        first, second = spread(slower=slower)(random, runs)
        second[random.integers(runs)] += math.log(1.5)
        return first, second

    return factors


def two_kinds(slower: float = 1.0) -> Factors:
    """A fifth of the runs of both sides takes 1.3 times as long."""

    def factors(random: Random, runs: int) -> tuple[Floats, Floats]:
        first, second = spread(slower=slower)(random, runs)
        return (
            first + np.where(random.uniform(size=runs) < 0.2, math.log(1.3), 0),
            second + np.where(random.uniform(size=runs) < 0.2, math.log(1.3), 0),
        )

    return factors


def drifting(in_turn: bool = False, slower: float = 1.0) -> Factors:
    """Surroundings that change by a random step of 1 % a run."""

    def factors(random: Random, runs: int) -> tuple[Floats, Floats]:
        level = np.cumsum(random.normal(0, 0.01, 2 * runs)) + random.normal(0, 0.005, 2 * runs)
        level[runs:] += math.log(slower)
        if not in_turn:
            return level[:runs], level[runs:]
        # A B, B A, A B
        first = [2 * pair + pair % 2 for pair in range(runs)]
        second = [2 * pair + 1 - pair % 2 for pair in range(runs)]
        return level[first], level[second]

    return factors


def restarted(slower: float = 1.0) -> Factors:
    """Each block of two runs is of another start of the service, and starts differ by 2 %."""

    def factors(random: Random, runs: int) -> tuple[Floats, Floats]:
        starts = np.repeat(random.normal(0, 0.02, runs), 2) + random.normal(0, 0.005, 2 * runs)
        return starts[:runs], starts[runs:] + math.log(slower)

    return factors


def rising(random: Random, runs: int) -> tuple[Floats, Floats]:
    """Data that grow, so that each run takes 1 % longer than the one before."""
    level = 0.01 * np.arange(2 * runs) + random.normal(0, 0.005, 2 * runs)
    return level[:runs], level[runs:]


def as_promised(random: Random, runs: int) -> tuple[Floats, Floats]:
    """A change as great as runs with a spread of 2 % say that they find in 80 % of cases."""
    return spread(slower=1 + _promised(runs))(random, runs)


EQUAL = (0.0, _FALSE)
SCENARIOS = (
    Scenario(name="equal, runs differ by 2 %", factors=spread(), found={3: EQUAL, 5: EQUAL}),
    Scenario(
        name="equal, Pareto latencies", factors=spread(), pareto=True, found={3: EQUAL, 5: EQUAL}
    ),
    Scenario(
        name="equal, a fifth of all runs is 1.3 x", factors=two_kinds(), found={3: EQUAL, 5: EQUAL}
    ),
    Scenario(
        name="equal, but one run of B is 1.5 x", factors=one_odd(), found={3: EQUAL, 5: EQUAL}
    ),
    Scenario(
        name="equal, 1 % random steps, in turn",
        factors=drifting(in_turn=True),
        in_pairs=True,
        found={3: EQUAL, 5: EQUAL},
    ),
    Scenario(
        name="equal, 1 % random steps, A before B",
        factors=drifting(),
        found={3: (0.0, 1.0), 5: (0.0, 1.0)},
    ),
    Scenario(
        name="equal, runs differ by 2 % and 10 %",
        factors=spread(other=0.1),
        found={3: (0.0, 0.1), 5: (0.0, 0.1)},
    ),
    Scenario(
        name="equal, 1 % random steps, in blocks",
        factors=drifting(),
        block=2,
        found={6: EQUAL, 8: EQUAL},
    ),
    Scenario(
        name="equal, 2 % a restart, in blocks",
        factors=restarted(),
        block=2,
        found={6: EQUAL, 8: EQUAL},
    ),
    Scenario(
        name="equal, 1 % more a run, in blocks",
        factors=rising,
        block=2,
        found={6: (0.0, 0.1), 8: EQUAL},
    ),
    Scenario(
        name="15 % slower, 1 % random steps, in blocks",
        factors=drifting(slower=1.15),
        block=2,
        found={6: (0.6, 1.0), 8: (0.9, 1.0)},
    ),
    Scenario(
        name="15 % slower, 2 % a restart, in blocks",
        factors=restarted(slower=1.15),
        block=2,
        found={6: (0.6, 1.0), 8: (0.9, 1.0)},
    ),
    Scenario(name="10 % slower", factors=spread(slower=1.1), found={3: (0.6, 1.0), 5: (0.98, 1.0)}),
    Scenario(
        name="10 % slower, runs differ by 5 %",
        factors=spread(0.05, slower=1.1),
        found={3: (0.0, 1.0), 5: (0.4, 1.0)},
    ),
    Scenario(
        name="10 % slower, and one run is 1.5 x",
        factors=one_odd(1.1),
        found={3: (0.0, 1.0), 5: (0.95, 1.0)},
    ),
    Scenario(
        name="slower by what 80 % would find",
        factors=as_promised,
        found={3: (0.7, 0.97), 5: (0.7, 0.97)},
    ),
)


def side(name: str, factors: Floats, random: Random, pareto: bool = False) -> list[ComparedRun]:
    """Runs of 3,000 iterations, of which only the percentiles are kept."""
    found = []
    for number, factor in enumerate(factors):
        if pareto:
            values = 0.005 * random.uniform(size=3000) ** (-1 / 1.5)
        else:
            values = 0.02 + random.exponential(0.002, 3000)
        p50, p95, p99 = (np.percentile(values, (50, 95, 99)) * math.exp(factor)).tolist()
        times = {"count": 3000, "mean": p50, "p50": p50, "p95": p95, "p99": p99}
        found.append(compared_run(f"{name}{number}", _FEW, latency={"service": {"ok": times}}))
    return found


#: Arrivals and latencies of the rest of a run, which is not looked at.
_FEW = (np.arange(2, dtype=np.int64) * 10**9, np.full(2, 10**7, np.int64))


def compared(scenario: Scenario, runs: int, random: Random) -> ComparisonResult:
    """One comparison."""
    before, after = (
        side(name, factors, random, scenario.pareto)
        for name, factors in zip("AB", scenario.factors(random, runs), strict=True)
    )
    return compare_sides(
        Evidence(
            before=before,
            after=after,
            in_pairs=scenario.in_pairs,
            blocks=numbered_blocks(before, after, scenario.block) if scenario.block else {},
        )
    )


def verdicts(scenario: Scenario, runs: int, comparisons: int, seed: int = 1) -> Counter[str]:
    """How often each verdict comes up."""
    random = np.random.default_rng(seed)
    return Counter(str(compared(scenario, runs, random).verdict) for _ in range(comparisons))


def wrong(scenario: Scenario, runs: int, found: Counter[str]) -> bool:
    """Whether more, or fewer, comparisons name a change than may."""
    all_ = found.total()
    share = 1 - found["no evidence"] / all_
    least, most = scenario.found[runs]
    low, high = (
        bound + sign * _ERRORS * math.sqrt(bound * (1 - bound) / all_)
        for bound, sign in ((least, -1), (most, 1))
    )
    return not low <= share <= high


def comparisons() -> Iterator[str]:
    """The table; its last line begins with "wrong" if any share is out of bounds."""
    yield f"Verdicts of {COMPARISONS} comparisons of three percentiles"
    yield f"{'B is':40} {'runs':>5}" + "".join(f"{word:>13}" for word in _WORDS)
    bad: list[str] = []
    for scenario in SCENARIOS:
        for runs in scenario.found:
            found = verdicts(scenario, runs, COMPARISONS)
            is_bad = wrong(scenario, runs, found)
            bad += [f"{scenario.name} ({runs} + {runs})"] if is_bad else []
            cells = "".join(f"{found[word] / COMPARISONS:>13.1%}" for word in _WORDS)
            yield f"{scenario.name:40} {runs:>2}+{runs}{cells}{' WRONG' if is_bad else ''}"
    if bad:
        yield f"wrong: {', '.join(bad)}"


@cache
def _promised(runs: int) -> float:
    """The median of what comparisons of equal sides say that they would find."""
    random = np.random.default_rng(7)
    found = [
        min(row.findable or math.inf for row in result.workloads[0].rows)
        for result in (compared(SCENARIOS[0], runs, random) for _ in range(60))
    ]
    return float(np.median(found))
