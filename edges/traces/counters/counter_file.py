"""The file of counters in a run directory: written and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgpack
import numpy as np
import zstandard

from osbench.common.files.decompression import decompress
from osbench.common.files.regular_files import read_regular
from osbench.common.protocol.unpacking import unpack
from osbench.coordinator.results.accounting.counter_figures import CounterKind
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_series import CounterSeries, Floats, WorkloadCounters

COUNTERS = "counters"
#: Version of its format.
_FORMAT = 1
#: Most bytes that are read of it, decompressed.
_MOST_BYTES = 256 << 20


def write_counters(
    directory: RunDirectory, found: Mapping[int, WorkloadCounters], *, sync: bool = True
) -> None:
    """Write the counters of workloads, by number, to the run directory; replaces an earlier file.

    `sync` waits until it is on disk. Raises StorageError.
    """
    document = {
        "format": _FORMAT,
        "workloads": {
            number: {
                "step_s": one.step_s,
                "elapsed_s": one.elapsed_s,
                "series": [
                    [each.name, each.host, each.kind.value, each.unit, _packed_values(each)]
                    for each in one.series
                ],
            }
            for number, one in found.items()
        },
    }
    packed = zstandard.ZstdCompressor(level=3).compress(msgpack.packb(document))
    directory.replace(COUNTERS, packed, sync=sync)


def read_counters(directory: RunDirectory) -> dict[int, WorkloadCounters]:
    """Return the counters of a run by number of the workload.

    Empty if the file is missing, unreadable or of another format. Raises DamagedRun if it differs
    from the file that the run wrote.
    """
    directory.files.check(COUNTERS)
    try:
        packed = read_regular(directory.path / COUNTERS, _MOST_BYTES)
        found: Any = unpack(decompress(packed, _MOST_BYTES))
        if found["format"] != _FORMAT:
            return {}
        return {int(number): _counters(one) for number, one in found["workloads"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _packed_values(series: CounterSeries) -> bytes:
    # values that are too great for it become infinite
    with np.errstate(over="ignore"):
        return series.values.astype("<f4").tobytes()


def _unpacked_values(values: bytes) -> Floats:
    numbers = np.frombuffer(values, "<f4").astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _counters(document: Mapping[str, Any]) -> WorkloadCounters:
    """Return the counters of one workload from its mapping in the file.

    Raises ValueError, KeyError, TypeError if it is malformed.
    """
    series = tuple(
        CounterSeries(
            name=str(name),
            host=str(host),
            kind=CounterKind(kind),
            unit=str(unit),
            values=_unpacked_values(values),
        )
        for name, host, kind, unit, values in document["series"]
    )
    step_s, elapsed_s = float(document["step_s"]), float(document["elapsed_s"])
    if (
        not (0 < step_s < math.inf and math.isfinite(elapsed_s))
        or len({len(one.values) for one in series}) > 1
    ):
        raise ValueError("not a time axis")
    return WorkloadCounters(step_s=step_s, elapsed_s=elapsed_s, series=series)
