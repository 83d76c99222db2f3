"""Cost of an iteration to a worker process, and its duration, from a calibration. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome

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
    """The phases of a calibration by their ends, seconds after t0, and its most virtual users."""

    #: No iteration until here: what a process costs that only takes part.
    idle_s: float
    #: One virtual user, or few arrivals, until here: service time at low load.
    alone_s: float
    #: Up to `users` virtual users until here: the cost of an iteration.
    end_s: float
    users: int


@dataclass(frozen=True, kw_only=True)
class ProcessSample:
    """CPU time, memory and open files of one worker process, read at one time."""

    #: Seconds after t0.
    at_s: float
    #: CPU time since its start, seconds.
    cpu_s: float
    #: Resident memory, bytes, and open file descriptors.
    memory_bytes: int
    files: int


@dataclass(frozen=True, kw_only=True)
class IterationCost:
    """Measured or assumed cost of an iteration of a workload, and of a worker process alone."""

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


def requests_at_once(args: Any) -> int:
    """Return how many requests a virtual user has under way at most, by a scenario's arguments.

    More than 1 for flows with steps in `parallel`: each has its own connection, and so a file.
    """
    if isinstance(args, Mapping):
        members, most = args.get("parallel"), args.get("at_once")
        here = len(members) if isinstance(members, list | tuple) else 1
        own = min(here, most) if isinstance(most, int) else here
        return max([own, *map(requests_at_once, args.values())])
    if isinstance(args, list | tuple):
        return max(map(requests_at_once, args), default=1)
    return 1


def _ran_columns(rows: Iterable[Columns]) -> list[Ints]:
    """Return four arrays on the iterations that ran: start, end, idle time (ns) and outcome.

    Rows of dropped arrivals, which did not run, are left out.
    """
    parts = list(rows)
    columns = [
        np.concatenate([getattr(part, name) for part in parts]) if parts else np.zeros(0, np.int64)
        for name in ("started", "ended", "idle", "outcome")
    ]
    ran = np.isin(columns[-1], (Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT))
    return [one[ran] for one in columns]


def _by_load(service: Floats, started: Ints, phases: CalibrationPhases) -> tuple[Floats, Floats]:
    """Return service times of iterations that began at low load, and of iterations after it.

    `service` (seconds) and `started` (ns after t0) are of the same iterations. If none began at low
    load, the first array has all service times.
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
    """Return the cost of an iteration, from a calibration's rows; None if no iteration ended well.

    `samples`: of the worker process, by time. `result_bytes`: size of all result blocks.
    `connections`: HTTP connections opened, None if unknown. A figure without samples gets its
    default.
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
    """Return the last of `samples`, ordered by time, up to `at_s` seconds after t0, or None."""
    return next((one for one in reversed(samples) if one.at_s <= at_s), None)


def _idle_cpu(samples: Sequence[ProcessSample], phases: CalibrationPhases) -> float:
    """Return the fraction of a core that the worker process used before the first iteration.

    It is at most 0.2. With fewer than two samples of that phase it is the default `IDLE_CPU`.
    """
    quiet = [one for one in samples if IDLE_SETTLE_S <= one.at_s <= phases.idle_s]
    if len(quiet) < 2 or quiet[-1].at_s <= quiet[0].at_s:
        return IDLE_CPU
    used = (quiet[-1].cpu_s - quiet[0].cpu_s) / (quiet[-1].at_s - quiet[0].at_s)
    return min(max(used, 0.0), 0.2)


def _cpu_per_iteration(
    ended: Ints, samples: Sequence[ProcessSample], phases: CalibrationPhases, idle_cpu: float
) -> tuple[float, bool]:
    """Return CPU seconds per iteration without `idle_cpu`, and whether they are an upper bound.

    A bound is returned if the iterations' CPU use is within the noise, `VARIES`. Measured over the
    last phase; over more of the run if that has too few samples or iterations, or only noise. (0,
    False) if nothing was measured.
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
    """Return the bytes of memory that one more virtual user takes, from two samples.

    At least `USER_BYTES`, also if a sample is missing or `users` is 1.
    """
    if alone is None or crowd is None or users < 2:
        return USER_BYTES
    return max(USER_BYTES, (crowd.memory_bytes - alone.memory_bytes) // (users - 1))


def _files_per_user(before: ProcessSample | None, crowd: ProcessSample | None, users: int) -> float:
    if before is None or crowd is None:
        return 1.0
    return max(0.0, (crowd.files - before.files) / users)
