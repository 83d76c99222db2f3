"""Files of arrivals, made for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from osbench.edges.recordings.arrival_file import ArrivalWriter


def write_arrivals(
    path: Path, instants_s: Sequence[float], names: Sequence[str], span_s: float
) -> Path:
    """Write arrivals at some instants; their names take turns."""
    instants = np.rint(np.asarray(instants_s) * 1e6).astype(np.int64)
    with path.open("wb") as file:
        writer = ArrivalWriter(file, names, round(span_s * 1e6))
        writer.add(instants, np.arange(len(instants)) % len(names))
        writer.close()
    return path
