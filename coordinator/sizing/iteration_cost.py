"""Cost of an iteration to a worker process, and its duration, from a calibration. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.outcomes import Outcome
from osbench.common.protocol.columns import Columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Seconds at the beginning of the first and the last phase whose CPU time is not counted: threads
#: start in them, and workers learn of another rate.
IDLE_SETTLE_S = 0.3
SETTLE_S = 1.2
#: Share of a core by which a process varies without any iteration.
VARIES = 0.01
#: If nothing was measured: figures of docs/operations.md, Sizing.
PROCESS_BYTES = 75_000_000
USER_BYTES = 18_000
PROCESS_FILES = 40
RESULT_BYTES = 80
IDLE_CPU = 0.02


@dataclass(frozen=True, kw_only=True)
class CalibrationPhases:
    """The phases of a calibration by their end times, seconds after t0, and its number of virtual
    users.
    """

    #: No iteration until here: what a process costs that only takes part.
    idle_s: float
    #: One virtual user, or few arrivals, until here: service time at low load.
    alone_s: float
    #: Up to `users` virtual users until here: the cost of an iteration.
    end_s: float
    users: int


@dataclass(frozen=True, kw_only=True)
class ProcessSample:
    """CPU time, memory and open files of the worker process of a calibration at a point in time."""

    #: Seconds after t0.
    at_s: float
    #: CPU time since its start, seconds.
    cpu_s: float
    #: Resident memory, bytes, and open file descriptors.
    memory_bytes: int
    files: int


@dataclass(frozen=True, kw_only=True)
class IterationCost:
    """The cost of one iteration of a workload, and the fixed cost of a worker process.

    Measured by a calibration, or given by the user; fields with a default have it if not measured.
    """

    #: CPU time of the worker process per iteration, seconds; and whether that is a bound, as they
    #: took too little, or too few ended, to measure it.
    cpu_s: float
    cpu_at_most: bool = False
    #: Share of a core that a process takes without any iteration.
    idle_cpu: float = IDLE_CPU
    #: Service time of iterations that ended well, seconds, at low load.
    service_s: float
    service_p95_s: float
    #: The same with more users; None if too few ended.
    service_with_users_s: float | None = None
    #: For how long an iteration occupies its virtual user: service time with all that it sleeps.
    held_s: float
    #: Measured iterations, and measured iterations that did not end well.
    iterations: int = 0
    failed: int = 0
    memory_bytes: int = PROCESS_BYTES
    memory_user_bytes: int = USER_BYTES
    files: int = PROCESS_FILES
    files_user: float = 1.0
    #: Connections opened per iteration, apart from the first of each user; None: not known.
    new_connections: float | None = None
    #: Bytes of results per iteration that go through Redis.
    result_bytes: float = RESULT_BYTES
    #: Measured; otherwise given by the user.
    calibrated: bool = True


def _ran_columns(rows: Iterable[Columns]) -> list[Ints]:
    """Return arrays of start, end, idle time (all ns) and outcome of the iterations that ran.

    Rows of dropped arrivals are left out.
    """
    parts = list(rows)
    columns = [
        np.concatenate([getattr(part, name) for part in parts]) if parts else np.zeros(0, np.int64)
        for name in ("started", "ended", "idle", "outcome")
    ]
    ran = np.isin(columns[-1], (Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT))
    return [one[ran] for one in columns]


def _by_load(service: Floats, started: Ints, phases: CalibrationPhases) -> tuple[Floats, Floats]:
    """Split service times by `phases.alone_s`: at low load before, with more users after.
    `service`: seconds; `started`: ns after t0, of the same iterations. If none was at low load, the
    first result has all.
    """
    low = started < phases.alone_s * 1e9
    return service[low] if low.any() else service, service[~low]


def _new_connections(connections: int | None, users: int, iterations: int) -> float | None:
    if connections is None:
        return None
    return max(0, connections - users) / max(1, iterations)


def measured_cost(
    rows: Iterable[Columns],
    samples: Sequence[ProcessSample],
    phases: CalibrationPhases,
    result_bytes: int,
    connections: int | None,
) -> IterationCost | None:
    """Compute the cost of an iteration from rows and samples of one process in the `phases` of a
    calibration.

    `result_bytes`: size of all rows as shipped; `connections`: number of connections opened, None
    if unknown. Figures that could not be measured have defaults. None if no iteration ended well.
    """
    started, ended, idle, outcome = _ran_columns(rows)
    well = outcome == Outcome.OK
    if not well.any():
        return None
    service = (ended - started - idle)[well] / 1e9
    low, crowd = _by_load(service, started[well], phases)
    idle_cpu = _idle_cpu(samples, phases)
    before, alone_at, crowd_at = (
        _last(samples, at_s) for at_s in (phases.idle_s, phases.alone_s, phases.end_s)
    )
    cpu_s, cpu_at_most = _cpu_per_iteration(ended, samples, phases, idle_cpu)
    return IterationCost(
        cpu_s=cpu_s,
        cpu_at_most=cpu_at_most,
        idle_cpu=idle_cpu,
        service_s=float(low.mean()),
        service_p95_s=float(np.quantile(low, 0.95)),
        service_with_users_s=float(crowd.mean()) if len(crowd) else None,
        held_s=float((ended - started)[well].mean() / 1e9),
        iterations=len(outcome),
        failed=int((~well).sum()),
        memory_bytes=alone_at.memory_bytes if alone_at else PROCESS_BYTES,
        memory_user_bytes=_per_user(alone_at, crowd_at, phases.users),
        files=before.files if before else PROCESS_FILES,
        files_user=_files_per_user(before, crowd_at, phases.users),
        new_connections=_new_connections(connections, phases.users, len(outcome)),
        result_bytes=result_bytes / max(1, len(outcome)),
    )


def _last(samples: Sequence[ProcessSample], at_s: float) -> ProcessSample | None:
    """Return the last sample up to `at_s`, seconds after t0; None if there is none."""
    return next((one for one in reversed(samples) if one.at_s <= at_s), None)


def _idle_cpu(samples: Sequence[ProcessSample], phases: CalibrationPhases) -> float:
    """Return the fraction of a core, 0 to 0.2, that the process used in the phase without
    iterations.

    The default `IDLE_CPU` if there are fewer than two samples in it.
    """
    quiet = [one for one in samples if IDLE_SETTLE_S <= one.at_s <= phases.idle_s]
    if len(quiet) < 2 or quiet[-1].at_s <= quiet[0].at_s:
        return IDLE_CPU
    used = (quiet[-1].cpu_s - quiet[0].cpu_s) / (quiet[-1].at_s - quiet[0].at_s)
    return min(max(used, 0.0), 0.2)


def _cpu_per_iteration(
    ended: Ints, samples: Sequence[ProcessSample], phases: CalibrationPhases, idle_cpu: float
) -> tuple[float, bool]:
    """Return the CPU seconds per iteration, and whether they are only an upper bound; (0, False) if
    unknown.

    They are a bound if iterations took no more CPU than a process varies by itself. Measured in the
    last phase; if that has too few samples, because the host is busy, in more of the run. `ended`:
    ns after t0; `idle_cpu`: fraction of a core, which is subtracted.
    """
    bounds = []
    for from_s in (phases.alone_s + SETTLE_S, phases.idle_s, 0.0):
        inside = [one for one in samples if one.at_s >= from_s]
        if len(inside) < 2:
            continue
        first, last = inside[0], inside[-1]
        count = int(np.count_nonzero((ended > first.at_s * 1e9) & (ended <= last.at_s * 1e9)))
        if count:
            lasted_s = last.at_s - first.at_s
            used = last.cpu_s - first.cpu_s - idle_cpu * lasted_s
            if used > VARIES * lasted_s:
                return used / count, False
            bounds.append((max(used, 0.0) + VARIES * lasted_s) / count)
    return min(bounds, default=0.0), bool(bounds)


def _per_user(alone: ProcessSample | None, crowd: ProcessSample | None, users: int) -> int:
    """Return the bytes of memory of each virtual user after the first.

    `alone`, `crowd`: samples with one and with `users` users.

    At least `USER_BYTES`; exactly that if a sample is missing.
    """
    if alone is None or crowd is None or users < 2:
        return USER_BYTES
    return max(USER_BYTES, (crowd.memory_bytes - alone.memory_bytes) // (users - 1))


def _files_per_user(before: ProcessSample | None, crowd: ProcessSample | None, users: int) -> float:
    if before is None or crowd is None:
        return 1.0
    return max(0.0, (crowd.files - before.files) / users)
