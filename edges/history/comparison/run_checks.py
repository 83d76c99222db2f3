"""Checks whether the percentiles of two sides of runs may be compared: same load and so on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from osbench.common.secrets.masking import mask
from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.exit_code import LIMITED, meaning
from osbench.coordinator.results.accounting.totals import Offered
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.comparison_result import Caveat
from osbench.edges.history.comparison.run_series import common_workloads

#: Loads and durations that differ by less are the same; shares.
_SAME_LOAD, _SAME_LENGTH = 0.02, 0.1
#: Failures: normal deviates, and the difference of the shares, from which they differ.
_DEVIATES, _SHARE = 3.3, 0.001

Sides = tuple[Sequence[ComparedRun], Sequence[ComparedRun]]


def caveats(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> tuple[Caveat, ...]:
    """Return all doubts about comparing two sides; doubts that forbid it come first."""
    sides = (before, after)
    found = [*_of_runs([*before, *after]), *_of_sides(sides)]
    for name in common_workloads([*before, *after]):
        found += _of_workload(sides, name)
    return tuple(sorted(found, key=lambda one: not one.refuses))


def failed_share(runs: Sequence[ComparedRun], workload: str) -> tuple[int, int]:
    """Return (iterations that failed or timed out, iterations that ran), summed over the runs.

    Raises KeyError if a run lacks the workload.
    """
    found = [run.workloads[workload] for run in runs]
    return sum(one.bad for one in found), sum(one.ran for one in found)


def _of_runs(runs: Sequence[ComparedRun]) -> Iterator[Caveat]:
    for run in runs:
        if run.directory is not None and run.directory.damage:
            yield Caveat(text=f"run {run.run_id}: {run.directory.damage}", refuses=False)
        if not run.is_sound:
            code = LIMITED if run.is_limited else run.exit_code
            yield Caveat(
                text=f"run {run.run_id} ended with exit code {run.exit_code}: {meaning(code)}",
                refuses=True,
            )
        lost = sum(one.accounting.lost for one in run.report.workloads)
        if lost and run.is_sound:
            yield Caveat(text=f"run {run.run_id} lost {count(lost, 'iteration')}", refuses=True)


def _of_sides(sides: Sides) -> Iterator[Caveat]:
    yield from _differ(sides, "deployment", lambda run: run.deployment or "none")
    yield from _differ(sides, "version of osbench", lambda run: run.manifest.get("osbench"))
    first, second = (set().union(*(run.workloads for run in side)) for side in sides)
    for name in sorted(first ^ second):
        which = "before" if name in first else "after"
        yield Caveat(text=f"only the runs {which} have {plain(name)}", refuses=False)


def _of_workload(sides: Sides, name: str) -> Iterator[Caveat]:
    def offered(run: ComparedRun) -> Offered:
        return run.workloads[name].offered

    yield from _differ(
        sides, f"runner of {name}", lambda run: run.workloads[name].runner.type, refuses=True
    )
    yield from _differ(
        sides, f"virtual users of {name}", lambda run: offered(run).concurrency, refuses=True
    )
    yield from _rates(sides, name, "planned", lambda run: offered(run).rate_planned)
    yield from _rates(sides, name, "started", lambda run: offered(run).rate_offered)
    for what, of in _asked_values(sides, name):
        yield from _differ(sides, what, of)
    yield from _differ(sides, f"warm-up of {name}", lambda run: _warmup(run, name))
    yield from _differ(
        sides, f"number of workers of {name}", lambda run: len(run.workloads[name].workers)
    )
    lengths = [_mean(side, lambda run: offered(run).duration_s) for side in sides]
    if None not in lengths and not _near(lengths, _SAME_LENGTH):
        yield Caveat(
            text=f"{plain(name)} ran for {duration(lengths[0])} before, for"
            f" {duration(lengths[1])} after",
            refuses=False,
        )
    yield from _failures(sides, name)


def _differ(
    sides: Sides, what: str, of: Callable[[ComparedRun], Any], *, refuses: bool = False
) -> Iterator[Caveat]:
    values = [sorted({str(of(run)) for run in side}) for side in sides]
    if values[0] == values[1] and len(values[0]) == 1:
        return
    first, second = (plain(" and ".join(one), 120) for one in values)
    text = f"{plain(what)}: {first} before, {second} after"
    if first == second:
        text = f"{plain(what)}: differs between runs ({first})"
    yield Caveat(text=text, refuses=refuses)


def _rates(
    sides: Sides, name: str, word: str, of: Callable[[ComparedRun], float | None]
) -> Iterator[Caveat]:
    rates = [_mean(side, of) for side in sides]
    if None in rates or _near(rates, _SAME_LOAD):
        return
    first, second = (f"{three_digits(rate or 0)}/s" for rate in rates)
    yield Caveat(
        text=f"the load of {plain(name)} is not the same: {first} {word} before, {second} after",
        refuses=True,
    )


def _failures(sides: Sides, name: str) -> Iterator[Caveat]:
    (failed, ran), (failed_after, ran_after) = (failed_share(side, name) for side in sides)
    if not ran or not ran_after:
        return
    shares = failed / ran, failed_after / ran_after
    overall = (failed + failed_after) / (ran + ran_after)
    error = math.sqrt(overall * (1 - overall) * (1 / ran + 1 / ran_after))
    apart = abs(shares[0] - shares[1])
    if apart > _SHARE and apart > _DEVIATES * error:
        first, second = (f"{100 * share:.2g} %" for share in shares)
        yield Caveat(
            text=f"{first} of the iterations of {plain(name)} failed before, {second} after;"
            " only times of successful iterations are compared",
            refuses=False,
        )


def _asked_values(sides: Sides, name: str) -> Iterator[tuple[str, Callable[[ComparedRun], Any]]]:
    """Yield (label, function) for each argument, the plug-in and the data file of workload `name`.

    The function returns its value for a run; secrets are masked.
    """

    def argument(run: ComparedRun, key: str) -> Any:
        found = mask(run.asked.get(name, {}).get("args", {}))
        return found.get(key, "none")

    keys = {
        key for side in sides for run in side for key in run.asked.get(name, {}).get("args", {})
    }
    for key in sorted(keys):
        yield f"argument {key} of {name}", partial(argument, key=key)
    for key, what in (("scenario_source", "plug-in"), ("args_from", "data file")):
        yield f"{what} of {name}", partial(_of_asked, name=name, key=key)


def _of_asked(run: ComparedRun, name: str, key: str) -> Any:
    return run.asked.get(name, {}).get(key)


def _warmup(run: ComparedRun, name: str) -> float:
    return run.workloads[name].warmup.seconds


def _mean(side: Sequence[ComparedRun], of: Callable[[ComparedRun], float | None]) -> float | None:
    found = [value for value in map(of, side) if value is not None]
    return sum(found) / len(found) if found else None


def _near(values: Sequence[float | None], share: float) -> bool:
    low, high = sorted(value or 0.0 for value in values)
    return high - low <= share * high
