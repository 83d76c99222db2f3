"""CPU usage of workers over time, in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Bins of time; when they do not reach far enough their width doubles.
BINS = 600
_FINEST_S = 1.0

Floats = NDArray[np.float64]


class CpuProfile:
    """Samples of workers' CPU usage by bin of time; 1.0 is one core."""

    def __init__(self) -> None:
        self._width_s = _FINEST_S
        #: By incarnation: sums of samples, how many, and the greatest.
        self._sums: dict[str, Floats] = {}
        self._counts: dict[str, Floats] = {}
        self._greatest: dict[str, float] = {}

    def add(self, worker: str, elapsed_s: float, cpu: float) -> None:
        """Add a sample of a worker, `elapsed_s` seconds after t0."""
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
        """Mean of all samples of a worker, None without any."""
        if worker not in self._sums:
            return None
        return float(self._sums[worker].sum() / self._counts[worker].sum())

    def greatest(self, worker: str) -> float | None:
        """The greatest sample of a worker, None without any."""
        return self._greatest.get(worker)

    def points(self) -> dict[str, list[list[float]]]:
        """By worker: the middle of each bin, seconds after t0, with the mean in it."""
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
