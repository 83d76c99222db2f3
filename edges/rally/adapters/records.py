"""Result rows in the format of Rally's runners: one mapping per iteration, with Rally's keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from osbench.common.protocol.columns import Columns
from osbench.common.protocol.iteration_outputs import outputs
from osbench.common.secrets.masking import mask
from osbench.common.values.outcomes import RAN, Outcome

Texts = Mapping[int, Sequence[str]]

_RAN = frozenset(int(outcome) for outcome in RAN)
_OK = int(Outcome.OK)
#: Errors without stored text: timeouts, and failures beyond the number that is stored.
_NO_TEXT = {
    int(Outcome.TIMED_OUT): ("IterationTimeout", "had not ended at its timeout", ""),
    int(Outcome.FAILED): ("", "", ""),
}


def records(columns: Columns, failures: Texts, t0_at: float) -> Iterator[tuple[int, Any]]:
    """Yield (number, record) of each iteration that ran, in the order of the rows.

    A record is a mapping of Rally's runners: times in seconds since 1970-01-01 UTC, durations in
    seconds. `failures`: type, message and traceback by failure number. `t0_at`: t0, seconds since
    1970.
    """
    charts = dict(columns.outputs)
    actions = _actions_by_row(columns, t0_at)
    names = ("iteration", "outcome", "started", "ended", "idle", "failure")
    rows = zip(*(getattr(columns, name).tolist() for name in names), strict=True)
    for at, (iteration, outcome, started, ended, idle, failure) in enumerate(rows):
        if outcome in _RAN:
            yield (
                iteration,
                {
                    "timestamp": t0_at + started / 1e9,
                    "duration": (ended - started - idle) / 1e9,
                    "idle_duration": idle / 1e9,
                    "error": [] if outcome == _OK else [*failures.get(failure, _NO_TEXT[outcome])],
                    "output": _charts(charts.get(iteration, ())),
                    "atomic_actions": actions.get(at, []),
                },
            )


def _charts(packed: Iterable[bytes]) -> dict[str, list[Any]]:
    """Return an iteration's charts by kind, secrets masked."""
    found: dict[str, list[Any]] = mask(outputs(packed))
    return {kind: found[kind] for kind in ("additive", "complete")}


def _actions_by_row(columns: Columns, t0_at: float) -> dict[int, list[dict[str, Any]]]:
    """Return the actions of each row by its index, as trees in Rally's format."""
    found: dict[int, list[dict[str, Any]]] = {}
    of_row: dict[int, list[dict[str, Any]]] = {}
    for row, name, parent, started, ended, failed in columns.actions.tolist():
        # an action without end was interrupted together with its iteration
        end = ended if ended >= started else int(columns.ended[row])
        action: dict[str, Any] = {
            "name": columns.names[name],
            "children": [],
            "started_at": t0_at + started / 1e9,
            "finished_at": t0_at + max(started, end) / 1e9,
        }
        if failed or ended < started:
            action["failed"] = True
        siblings = of_row.setdefault(row, [])
        # an action can only be inside one that began before it
        known = 0 <= parent < len(siblings)
        inside = siblings[parent]["children"] if known else found.setdefault(row, [])
        inside.append(action)
        siblings.append(action)
    return found
