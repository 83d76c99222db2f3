"""Checks of what the product printed, each named by the right value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from truth.planting import Seen


@dataclass(frozen=True, kw_only=True)
class Check:
    """The right value in words, and a look at a run: what it printed, and whether that is right."""

    right: str
    look: Callable[[Seen], tuple[str, bool]]
    #: Its verdict depends on a machine that is fast enough.
    is_timed: bool = False


def exits(*codes: int) -> Check:
    """Check the exit code, which the summary has too."""

    def look(seen: Seen) -> tuple[str, bool]:
        printed = seen.summary.get("exit_code", seen.code)
        return f"exit {seen.code}", seen.code in codes and printed == seen.code

    return Check(right=f"exit {' or '.join(map(str, codes))}", look=look)


def number(path: str, right: float | None, within: float = 0.0, *, is_timed: bool = False) -> Check:
    """Check a number of the workload, or null, by its path: `throughput.ok_per_s`."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = _at(seen.workload, path)
        if found is None or right is None:
            return f"{path} {found}", found is right
        return f"{path} {found:.4g}", abs(found - right) <= within * abs(right)

    around = f" +-{within:.0%}" if within else ""
    return Check(right=f"{path} {right}{around}", look=look, is_timed=is_timed)


def percentiles(of: str, right: Mapping[str, float], within: float = 0.02) -> Sequence[Check]:
    """Check percentiles of `response` or `service` time of iterations that are ok, seconds."""
    return [
        number(f"latency.{of}.ok.{name}", value, within, is_timed=True)
        for name, value in right.items()
    ]


def share(state: str, least: float, most: float) -> Check:
    """Check the share of planned iterations that ended in a state."""

    def look(seen: Seen) -> tuple[str, bool]:
        sums = seen.workload.get("accounting") or {}
        found = sums[state] / sums["planned"] if sums.get("planned") else -1.0
        return f"{state} {found:.1%}", least <= found <= most

    words = f"{least:.0%}" if least == most else f"{least:.0%} to {most:.0%}"
    return Check(right=f"{state} {words}", look=look, is_timed=True)


def bound(*causes: str, fault: str) -> Check:
    """Check that the first bound has one of the causes, and this owner."""

    def look(seen: Seen) -> tuple[str, bool]:
        first = seen.bounds[0] if seen.bounds else {"cause": "", "fault": ""}
        return _bounds(seen), first["cause"] in causes and first["fault"] == fault

    return Check(right=f"bound by {' or '.join(causes)} ({fault})", look=look)


def no_bound(fault: str = "", *, besides: Sequence[str] = ()) -> Check:
    """Check that nothing bound the load: nothing of an owner, and of no cause but `besides`."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = [one for one in seen.bounds if one["fault"] == fault or not fault]
        return _bounds(seen), bool(seen.workload) and all(one["cause"] in besides for one in found)

    but = f" but {', '.join(besides)}" if besides else ""
    return Check(right=f"not bound by {fault or 'anything'}{but}", look=look)


def bound_says(*parts: str) -> Check:
    """Check that the sentence of the first bound has all parts."""

    def look(seen: Seen) -> tuple[str, bool]:
        said = seen.bounds[0]["sentence"] if seen.bounds else ""
        return repr(said[:90]), all(part in said for part in parts)

    return Check(right=f"says {' and '.join(map(repr, parts))}", look=look)


def note(*parts: str) -> Check:
    """Check that one note of the run has all parts."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = [one for one in seen.notes if all(part in one for part in parts)]
        return f"note {_excerpt(found[0], parts[0])}" if found else "no such note", bool(found)

    return Check(right=f"a note with {' and '.join(map(repr, parts))}", look=look)


def note_with_number(before: str, right: float, within: float) -> Check:
    """Check that a note has a number of seconds behind some words."""

    def look(seen: Seen) -> tuple[str, bool]:
        for one in seen.notes:
            if match := re.search(re.escape(before) + r" ([\d.]+) s\b", one):
                return f"note {match[0]!r}", abs(float(match[1]) - right) <= within * right
        return "no such note", False

    return Check(right=f"a note with {before!r} {right} s +-{within:.0%}", look=look)


def says(*parts: str) -> Check:
    """Check that the user is told: in the object, or on stderr, without a traceback."""

    def look(seen: Seen) -> tuple[str, bool]:
        error = seen.summary.get("error") or {}
        problems = [f"{one['place']}: {one['message']}" for one in error.get("problems", ())]
        told = "\n".join([error.get("message", ""), *problems, seen.err])
        lines = [line for line in told.splitlines() if parts[0] in line]
        is_right = all(part in told for part in parts) and "Traceback" not in told
        return repr((lines or told.splitlines() or [""])[0][-110:]), is_right

    return Check(right=f"says {' and '.join(map(repr, parts))}, no traceback", look=look)


def verdict(criterion: str, *parts: str, without: str = "") -> Check:
    """Check that a criterion failed, and that its line has all parts, and not `without`."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = [one for one in seen.workload.get("sla") or () if one["criterion"] == criterion]
        if not found:
            return f"no criterion {criterion}", False
        detail, success = found[0]["detail"], found[0]["success"]
        is_right = all(part in detail for part in parts) and not (without and without in detail)
        return f"{criterion} {'met' if success else 'failed'}: {detail!r}", is_right and not success

    says = [*map(repr, parts), *([f"not {without!r}"] if without else [])]
    return Check(right=f"{criterion} fails, its line with {' and '.join(says)}", look=look)


def explanation(*parts: str) -> Check:
    """Check that the sentence on slow iterations has some words."""

    def look(seen: Seen) -> tuple[str, bool]:
        text = str(seen.workload["tracing"].get("explanation") or "")
        return repr(text[-200:]), all(part in text for part in parts)

    wanted = " and ".join(map(repr, parts))
    return Check(right=f"slow iterations are explained by {wanted}", look=look)


def capacity(low: float, high: float, unit: str = "/s") -> Check:
    """Check that a search's interval meets a range, or that it has no figure, with exit code 4."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = seen.workload.get("search") or {}
        interval = found.get("low"), found.get("high")
        if found.get("rate") is None:
            return f"no figure, exit {seen.code}", seen.code == 4
        said = f"{found['kind']} {found['rate']:.4g}{unit}, {interval[0]:.4g} to {interval[1]:.4g}"
        is_met = None not in interval and interval[0] <= high and interval[1] >= low
        return f"{said}, exit {seen.code}", found["kind"] == "found" and is_met

    return Check(
        right=f"found within {low:g} to {high:g}{unit}, or no figure and exit 4", look=look
    )


def recovery(within_s: float) -> Check:
    """Check that a drill has recovered when the referee was asked to be quick again."""

    def look(seen: Seen) -> tuple[str, bool]:
        drill, changes = seen.workload.get("drill") or {}, seen.log.changes
        if drill.get("recovery_s") is None or len(changes) != 2:
            return f"no recovery ({drill.get('doubt')}), {len(changes)} changes", False
        slow_s = changes[1] - changes[0]
        said = f"recovered after {drill['recovery_s']:.2f} s, slow for {slow_s:.2f} s"
        return said, abs(drill["recovery_s"] - slow_s) <= within_s

    return Check(right=f"recovery_s as at the server +-{within_s:g} s", look=look)


def gaps(right_s: float, within_s: float, least: int) -> Check:
    """Check the time between each two requests that followed each other at the referee."""

    def look(seen: Seen) -> tuple[str, bool]:
        instants = [at_s for at_s, _ in seen.log.requests]
        found = [later - earlier for earlier, later in pairwise(instants)]
        if not found:
            return f"{len(instants)} requests", False
        said = f"{len(instants)} requests, gaps {min(found):.3f} to {max(found):.3f} s"
        is_even = max(abs(gap - right_s) for gap in found) <= within_s
        return said, len(instants) >= least and is_even

    right = f"{least} requests or more, gaps {right_s:g} s +-{within_s:g} s"
    return Check(right=right, look=look, is_timed=True)


def paths(planned: Callable[[float], str], count: int, around_s: float = 0.1) -> Check:
    """Check that each request at the referee has the path of its instant, or of one close to it."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = seen.log.requests
        other = [
            path
            for at_s, path in found
            if path not in {planned(at_s + shift_s) for shift_s in (-around_s, 0, around_s)}
        ]
        said = f"{len(found)} requests, {len(other)} at another time than in the log"
        return said, len(found) == count and not other

    return Check(right=f"{count} requests, each at its time", look=look, is_timed=True)


def lasts(most_s: float) -> Check:
    """Check how long the run lasted."""

    def look(seen: Seen) -> tuple[str, bool]:
        begin, end = (seen.summary.get(name, "") for name in ("started_at", "finished_at"))
        if not begin or not end:
            return "no run", False
        lasted_s = (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
        return f"lasted {lasted_s:.1f} s", lasted_s <= most_s

    return Check(right=f"at most {most_s:g} s", look=look, is_timed=True)


def unsaid(*words: str) -> Check:
    """Check that neither notes, bounds nor stderr have one of the words."""

    def look(seen: Seen) -> tuple[str, bool]:
        bounds = [one["sentence"] for one in seen.bounds]
        lines = [*seen.notes, *bounds, *seen.err.splitlines()]
        found = [line for line in lines if any(word in line for word in words)]
        said = repr(found[0][:110]) if found else f"no line with {' or '.join(map(repr, words))}"
        return said, not found and bool(seen.workload)

    return Check(right=f"nothing with {' or '.join(map(repr, words))}", look=look)


def requests_once(method: str, least: int) -> Check:
    """Check that the server has seen each iteration's request once."""

    def look(seen: Seen) -> tuple[str, bool]:
        counts = seen.log.iterations.get(method, {})
        most = max(counts.values(), default=0)
        printed = f"{len(counts)} {method}s, each seen {most} times at most"
        return printed, len(counts) >= least and most == 1

    return Check(right=f"each {method} seen once", look=look)


def nothing_left() -> Check:
    """Check that contexts have removed the files that they made."""

    def look(seen: Seen) -> tuple[str, bool]:
        return f"left {', '.join(seen.left) or 'nothing'}", not seen.left

    return Check(right="contexts undone", look=look)


def failed_as(number_of: int) -> Check:
    """Check how many iterations failed, of the accounting."""
    return number("accounting.failed", number_of)


def not_begun(at: int, planned: int) -> Check:
    """Check that a workload which never began is in the summary, its plan too, and in JUnit."""

    def look(seen: Seen) -> tuple[str, bool]:
        found = (seen.summary.get("workloads") or [])[at : at + 1]
        if not found:
            return f"no workload {at}", False
        sums, why = found[0]["accounting"], found[0]["not_begun"]
        suite = seen.junit.rpartition("<testsuite ")[2]
        printed = f"not begun: {why!r}, planned {sums['planned']}, JUnit errors {'<error' in suite}"
        return printed, bool(why) and sums["planned"] == planned and "<error" in suite

    return Check(right=f"workload {at} not begun, planned {planned}, an error in JUnit", look=look)


def no_workloads() -> Check:
    """Check that no load has begun."""

    def look(seen: Seen) -> tuple[str, bool]:
        count = len(seen.summary.get("workloads") or ())
        return f"{count} workloads", count == 0

    return Check(right="no load", look=look)


def of(at: int, check: Check) -> Check:
    """Check another workload than the first."""

    def look(seen: Seen) -> tuple[str, bool]:
        printed, is_right = check.look(at_workload(seen, at))
        return f"[{at}] {printed}", is_right

    return Check(right=f"[{at}] {check.right}", look=look)


def at_workload(seen: Seen, at: int) -> Seen:
    """The same run, with another workload to be looked at."""
    return Seen(**{**vars(seen), "at": at})


def _at(workload: Mapping[str, Any], path: str) -> Any:
    found: Any = workload
    for name in path.split("."):
        if isinstance(found, Sequence):
            found = found[int(name)] if int(name) < len(found) else None
        else:
            found = (found or {}).get(name)
    return found


def _bounds(seen: Seen) -> str:
    return ", ".join(f"{one['cause']} ({one['fault']})" for one in seen.bounds) or "no bound"


def _excerpt(text: str, part: str) -> str:
    at = max(0, text.find(part) - 20)
    return repr(text[at : at + 100])
