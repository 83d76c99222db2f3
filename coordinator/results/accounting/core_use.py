"""Use of cores during a load: CPU of workers, threads that waited for a core, and full hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures

#: Share of a host's cores in use from which it is full.
FULL = 0.95
#: Bins of time; when they do not reach far enough their width doubles.
BINS = 600
_FINEST_S = 1.0

Floats = NDArray[np.float64]


class CpuProfile:
    """CPU usage of each worker process over time, in cores (1.0 is one core).

    Each has `BINS` bins of time, whose width doubles when the load lasts longer.
    """

    def __init__(self) -> None:
        self._width_s = _FINEST_S
        #: By incarnation: sums of samples, how many, and the greatest.
        self._sums: dict[str, Floats] = {}
        self._counts: dict[str, Floats] = {}
        self._greatest: dict[str, float] = {}

    def add(self, worker: str, elapsed_s: float, cpu: float) -> None:
        """Add a worker's CPU sample (cores), taken `elapsed_s` after t0; ignored before t0."""
        if elapsed_s < 0:
            return
        while elapsed_s >= BINS * self._width_s:
            self._widen()
        sums = self._sums.setdefault(worker, np.zeros(BINS))
        counts = self._counts.setdefault(worker, np.zeros(BINS))
        place = int(elapsed_s // self._width_s)
        sums[place] += cpu
        counts[place] += 1
        self._greatest[worker] = max(self._greatest.get(worker, 0.0), cpu)

    def mean(self, worker: str) -> float | None:
        """Return the mean of all CPU samples of a worker, in cores; None without samples."""
        if worker not in self._sums:
            return None
        return float(self._sums[worker].sum() / self._counts[worker].sum())

    def greatest(self, worker: str) -> float | None:
        """Return the greatest single CPU sample of a worker, in cores; None without samples."""
        return self._greatest.get(worker)

    def points(self) -> dict[str, list[list[float]]]:
        """Return [seconds after t0, mean cores] by worker, for each bin with samples, in order.

        The time is the middle of the bin.
        """
        return {
            worker: [
                [(place + 0.5) * self._width_s, round(sums[place] / counts[place], 3)]
                for place in np.flatnonzero(counts).tolist()
            ]
            for worker, sums in sorted(self._sums.items())
            for counts in (self._counts[worker],)
        }

    def _widen(self) -> None:
        for values in (*self._sums.values(), *self._counts.values()):
            values[: BINS // 2] = values[0::2] + values[1::2]
            values[BINS // 2 :] = 0
        self._width_s *= 2


class CoreUse:
    """Means by worker of figures in its heartbeats under load; no mean over workers.

    They are threads that wait for a core, cores in use on the host, and the fraction of CPU quota
    periods with throttling.
    """

    def __init__(self) -> None:
        #: By worker: beats, sum of `waiting`, beats that knew `cores_used`, and their sum.
        self._sums: dict[str, tuple[int, float, int, float]] = {}
        #: By worker: sum of `throttled`.
        self._throttled: defaultdict[str, float] = defaultdict(float)
        self._last: dict[str, int] = {}

    def add(self, worker: str, beat: Heartbeat) -> None:
        """Add a heartbeat of a worker; ignored if it has the number of the last one added."""
        if self._last.get(worker) == beat.beat:
            return
        self._last[worker] = beat.beat
        beats, waiting, known, used = self._sums.get(worker, (0, 0.0, 0, 0.0))
        self._throttled[worker] += beat.throttled
        knows = beat.cores_used >= 0
        self._sums[worker] = (
            beats + 1,
            waiting + beat.waiting,
            known + knows,
            used + (beat.cores_used if knows else 0.0),
        )

    def waiting(self, worker: str) -> float | None:
        """Return a worker's mean number of threads waiting for a core; None without heartbeats."""
        beats, waiting, _, _ = self._sums.get(worker, (0, 0.0, 0, 0.0))
        return waiting / beats if beats else None

    def cores_used(self, worker: str) -> float | None:
        """Return the mean number of cores in use on a worker's host; None if it is not known."""
        _, _, known, used = self._sums.get(worker, (0, 0.0, 0, 0.0))
        return used / known if known else None

    def throttled(self, worker: str) -> float | None:
        """Return the fraction (0 to 1) of CPU quota periods in which a worker was throttled.

        None without heartbeats.
        """
        beats, *_ = self._sums.get(worker, (0,))
        return self._throttled[worker] / beats if beats else None


@dataclass(frozen=True, kw_only=True)
class HostUse:
    """Mean use of the cores of one host that runs workers, under load; all in cores.

    `used` is by all programs, `ours` by the workers.
    """

    host: str
    cores: int
    #: Cores that any program used, and that the workers used.
    used: float
    ours: float

    @property
    def is_full(self) -> bool:
        """Return whether all programs used at least the fraction `FULL` of the host's cores."""
        return self.used >= FULL * self.cores

    @property
    def others(self) -> float:
        """Mean number of cores that programs other than the workers used; 0 or more."""
        return max(0.0, self.used - self.ours)


def host_uses(workers: Sequence[WorkerFigures]) -> list[HostUse]:
    """Return a `HostUse` for each host of these workers, the greatest used fraction of cores first.

    Workers whose number or use of cores is unknown are left out.
    """
    by_host: dict[str, list[WorkerFigures]] = {}
    for worker in workers:
        if worker.cores and worker.cores_used is not None:
            by_host.setdefault(worker.host, []).append(worker)
    found = [
        HostUse(
            host=host,
            cores=max(one.cores or 0 for one in here),
            used=sum(one.cores_used or 0.0 for one in here) / len(here),
            ours=sum(one.cpu_mean or 0.0 for one in here),
        )
        for host, here in by_host.items()
    ]
    return sorted(found, key=lambda one: -one.used / one.cores)
