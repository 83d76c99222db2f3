"""Compares what a run says of its iterations with what the server under test saw of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servers.iteration_log import Line

STATES = ("ok", "failed", "timed_out", "dropped", "lost", "not_started")


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a run says of one workload."""

    run: str
    #: The tag in the URL of its requests.
    tag: str
    #: `accounting` of the workload in the summary.
    accounting: Mapping[str, Any]
    #: Rows of `results --csv`: iteration and outcome of each that ended or was dropped.
    rows: Sequence[tuple[int, str]]
    is_idempotent: bool = False


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a run has ended."""

    #: Exit code of the command that reported it.
    code: int
    #: Of its workloads, as far as they were begun.
    accountings: Sequence[Mapping[str, Any]]
    #: Notes of the run.
    notes: Sequence[str] = ()
    #: Somebody has pressed Ctrl-C, perhaps after the load was over.
    is_interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What reached the server of one workload."""

    #: How often each iteration was started.
    starts: Counter[int] = field(default_factory=Counter)
    #: Those that were answered.
    answered: frozenset[int] = frozenset()

    @classmethod
    def of(cls, lines: Sequence[Line], run: str, tag: str) -> Seen:
        """From the server's log."""
        own = [line for line in lines if (line.run, line.tag) == (run, tag)]
        return cls(
            starts=Counter(line.iteration for line in own if not line.answered),
            answered=frozenset(line.iteration for line in own if line.answered),
        )


def violations(told: Told, seen: Seen) -> list[str]:
    """What does not fit of a workload, a sentence each; empty where all fits."""
    return _of_sums(told) + _of_rows(told) + _of_starts(told, seen)


def wrong_code(ending: Ending) -> list[str]:
    """That the exit code does not fit with how a run without SLA has ended; empty where it does."""
    wanted = 3 if any(map(_is_missing, ending.accountings)) or _is_broken(ending) else 0
    if ending.code == wanted or (ending.is_interrupted and ending.code == 130):
        return []
    return [f"exit code {ending.code}, not {wanted}{' or 130' if ending.is_interrupted else ''}"]


def miscounts(told: Told, seen: Seen) -> Counter[str]:
    """How many iterations of a workload are not accounted for exactly once."""
    sums = told.accounting
    return Counter(
        {
            "unaccounted": abs(sums["planned"] - sum(sums[state] for state in STATES)),
            "counted twice": len(_twice(told)),
            "started twice": 0 if told.is_idempotent else len(_started_twice(seen)),
        }
    )


def _is_broken(ending: Ending) -> bool:
    return any("could not continue" in note for note in ending.notes)


def _is_missing(sums: Mapping[str, Any]) -> bool:
    return bool(sums["lost"] or sums["not_started"] or _other_drops(sums))


def _twice(told: Told) -> list[int]:
    return [number for number, count in Counter(one for one, _ in told.rows).items() if count > 1]


def _started_twice(seen: Seen) -> list[int]:
    return [number for number, count in seen.starts.items() if count > 1]


def _other_drops(sums: Mapping[str, Any]) -> bool:
    """Arrivals that were dropped for a reason which is not the generator's limits."""
    known = ("max_concurrency", "capacity", "late")
    return any(count for reason, count in sums.get("drops", {}).items() if reason not in known)


def _of_sums(told: Told) -> list[str]:
    sums = told.accounting
    total = sum(sums[state] for state in STATES)
    found = []
    if total != sums["planned"]:
        found.append(f"unaccounted: {sums['planned'] - total} of {sums['planned']} planned")
    if sums["failed"] or sums["timed_out"]:
        # the server answers all with 200 and nothing has a timeout
        found.append(f"{sums['failed']} failed and {sums['timed_out']} timed out")
    return found


def _of_rows(told: Told) -> list[str]:
    sums = told.accounting
    found = []
    twice = _twice(told)
    if twice:
        found.append(f"counted twice: {_some(twice)}")
    states = Counter(outcome.partition("_lost")[0] for _, outcome in told.rows)
    dropped = sum(count for name, count in states.items() if name.startswith("dropped"))
    for name, count in (("ok", states["ok"]), ("dropped", dropped)):
        if count != sums[name]:
            found.append(f"{name}: {sums[name]} in the summary, {count} in the rows")
    beyond = [number for number, _ in told.rows if not 1 <= number <= sums["planned"]]
    if beyond:
        found.append(f"results of iterations that were not planned: {_some(beyond)}")
    return found


def _of_starts(told: Told, seen: Seen) -> list[str]:
    sums = told.accounting
    found = []
    again = _started_twice(seen)
    if again and not told.is_idempotent:
        found.append(f"started twice: {_some(again)}")
    ok = {number for number, outcome in told.rows if outcome == "ok"}
    if ok - seen.answered:
        found.append(f"ok, and the server did not answer: {_some(ok - seen.answered)}")
    dropped = {number for number, outcome in told.rows if outcome.startswith("dropped")}
    # what may run again is dropped, not lost, where there is no time left to do so
    if dropped & seen.starts.keys() and not told.is_idempotent:
        found.append(f"dropped, though started: {_some(dropped & seen.starts.keys())}")
    # a number is started, or it was told to be; the rest of the plan is all that may not have been
    unreported = seen.starts.keys() - ok - dropped
    if len(unreported) > sums["lost"] + sums["failed"] + sums["timed_out"]:
        found.append(
            f"{len(unreported)} started and not reported, {sums['lost']} lost: "
            f"{sums['not_started']} told as not_started; {_some(unreported)}"
        )
    strange = [number for number in seen.starts if not 1 <= number <= sums["planned"]]
    if strange:
        found.append(f"started, and not planned: {_some(strange)}")
    return found


def _some(numbers: Any) -> str:
    found = sorted(numbers)
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return ", ".join(map(str, found[:8])) + more
