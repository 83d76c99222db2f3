"""Groups errors for display: errors that differ only in numbers and ids are one kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.report.iterations import Errors, Reported
from osbench.coordinator.report.model.workload_parts import ErrorReport
from osbench.coordinator.results.accounting.error_groups import shown_kind

#: Type of an error, and its message as `shown_kind` has it.
Kind = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class ErrorKind:
    """A kind of error: its most frequent error, with the counts of all its errors summed."""

    error: ErrorReport
    kind: Kind


def kinds_of(errors: Iterable[ErrorReport]) -> list[ErrorKind]:
    """Return the kinds of the given errors, the most frequent first.

    If a kind has several messages, its message has `*` instead of numbers and ids.
    """
    found: dict[Kind, list[ErrorReport]] = {}
    for error in errors:
        found.setdefault((error.type, shown_kind(error.message)), []).append(error)
    kinds = [
        ErrorKind(error=_error_of_kind(kind, several), kind=kind) for kind, several in found.items()
    ]
    return sorted(kinds, key=lambda one: -one.error.count)


def _error_of_kind(kind: Kind, errors: Sequence[ErrorReport]) -> ErrorReport:
    most = max(errors, key=lambda error: error.count)
    firsts = [error.first_iteration for error in errors if error.first_iteration is not None]
    differ = len({error.message for error in errors}) > 1
    return replace(
        most,
        message=kind[1] if differ else most.message,
        count=sum(error.count for error in errors),
        first_iteration=min(firsts, default=None),
    )


@dataclass
class FailureTimes:
    """Collects the due times of failed iterations, by workload and kind of error."""

    _dues: dict[tuple[int, str, int], list[NDArray[np.int64]]] = field(default_factory=dict)
    _errors: dict[tuple[int, str], Errors] = field(default_factory=dict)

    def add(self, block: Reported) -> None:
        """Add the iterations of a result block that failed with an error; each block once."""
        # filled as blocks are read: an error may be described in a later block than its row
        self._errors[block.workload, block.worker] = block.errors
        failures = block.columns.failure
        for number in set(failures[failures > 0].tolist()):
            key = (block.workload, block.worker, number)
            self._dues.setdefault(key, []).append(block.columns.due[failures == number])

    def by_kind(self) -> Mapping[tuple[int, Kind], NDArray[np.float64]]:
        """Return due times by (workload number, kind of error): seconds after t0, ascending."""
        found: dict[tuple[int, Kind], list[NDArray[np.int64]]] = {}
        for (workload, worker, number), dues in self._dues.items():
            etype, message, _ = self._errors[workload, worker].get(number, ("", "", ""))
            found.setdefault((workload, (etype, shown_kind(message))), []).extend(dues)
        return {key: np.sort(np.concatenate(dues)) / 1e9 for key, dues in found.items()}
