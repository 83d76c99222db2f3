"""Exporter `hdr`: an interval log of HdrHistogram, which its tools plot and merge.

Histograms are in its compressed form, version 2: nanoseconds with 3 significant digits. Layout:
http://hdrhistogram.org and `AbstractHistogram.encodeIntoCompressedByteBuffer` of
https://github.com/HdrHistogram/HdrHistogram.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import exporter
from osbench.plugin.formatting import timestamp

#: Intervals of a workload at most: beyond that their length doubles, so that memory is bounded.
INTERVALS = 600

_HEADING = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
#: What a tag must not hold.
_NO_TAG = re.compile(r"[\s,]+")

#: The largest value, nanoseconds: 10 days.
HIGHEST_NS = 10 * 24 * 3600 * 10**9
#: 3 significant digits need 2,048 sub-buckets; their upper half repeats in each bucket.
_HALF_BITS = 10
_DIGITS = 3
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
#: Cookie, bytes of counts, offset, digits, lowest and highest value, factor of values.
_HEAD = struct.Struct(">iiiiqqd")
_OUTER_HEAD = struct.Struct(">ii")


class Hdr(exporter.Exporter):
    """Writes latency.hlog: HdrHistogram's interval log, version 2, with a tag for each workload.

    A line has the durations of iterations that succeeded and were scheduled in its interval,
    without iterations of the warm-up. Values are nanoseconds; a tag is the workload's number, from
    0, and its scenario.
    """

    NAME: ClassVar[str] = "hdr"
    FILE: ClassVar[str] = "latency.hlog"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "time": {
                "enum": ["service", "response"],
                "default": "service",
                "description": "from start to end, or from the scheduled time to the end",
            },
            "interval_s": {
                "type": "number",
                "minimum": 0.01,
                "default": 1.0,
                "description": f"length of an interval; it doubles beyond {INTERVALS} of them",
            },
        },
        "additionalProperties": False,
    }

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Count successes after the warm-up by interval in memory; then write the log to `path`."""
        workloads = run.summary["workloads"]
        of_response = self.config.get("time") == "response"
        width_ns = int(self.config.get("interval_s", 1.0) * 1e9)
        found = [_Intervals(width_ns) for _ in workloads]
        for row in run.rows():
            value = row.response_ns if of_response else row.service_ns
            if row.outcome == "ok" and not row.warmup and value is not None:
                found[row.workload].add(row.due_ns or 0, value)
        began = [at for at in run.t0_at if at]
        base = min(began) if began else run.at
        with path.open("w", encoding="utf-8") as file:
            file.write("#[Histogram log format version 1.3]\n")
            file.write(f"#[StartTime: {base:.3f} (seconds since epoch), {timestamp(base)}]\n")
            file.write(f"#[BaseTime: {base:.3f} (seconds since epoch)]\n")
            file.write(f"{_HEADING}\n")
            for number, (workload, intervals) in enumerate(zip(workloads, found, strict=True)):
                tag = _NO_TAG.sub("_", f"{number}-{workload['name']}")
                for line in intervals.lines(run.t0_at[number] - base):
                    file.write(f"Tag={tag},{line}\n")


class _Intervals:
    """Histograms of the durations of one workload, one for each interval of time.

    At most `INTERVALS`: for later times all intervals double in length.
    """

    def __init__(self, width_ns: int) -> None:
        self._width_ns = width_ns
        self._counts: dict[int, Counter[int]] = {}
        self._most: dict[int, int] = {}

    def add(self, instant_ns: int, value_ns: int) -> None:
        """Count a duration `value_ns` in the interval of `instant_ns` after t0, both nanoseconds.

        Times before t0 count as t0. If the time is beyond the last interval, all intervals double
        in length until it is not.
        """
        while instant_ns // self._width_ns >= INTERVALS:
            self._widen()
        # clocks disagree a little: a time can seem to lie before t0
        at = max(instant_ns, 0) // self._width_ns
        counts = self._counts.get(at)
        if counts is None:
            counts = self._counts[at] = Counter()
        counts[position(value_ns)] += 1
        self._most[at] = max(self._most.get(at, 0), value_ns)

    def _widen(self) -> None:
        self._width_ns *= 2
        counts, most = self._counts, self._most
        self._counts, self._most = {}, {}
        for at, found in counts.items():
            self._counts.setdefault(at // 2, Counter()).update(found)
            self._most[at // 2] = max(self._most.get(at // 2, 0), most[at])

    def lines(self, begin_s: float) -> Iterator[str]:
        """Yield the log's line for each interval that has durations, in order, without the tag.

        `begin_s`: seconds from the log's base time to t0.
        """
        width_s = self._width_ns / 1e9
        for at in sorted(self._counts):
            # readers expect the maximum in milliseconds
            most_ms = self._most[at] / 1e6
            place = f"{begin_s + at * width_s:.3f},{width_s:.3f},{most_ms:.3f}"
            yield f"{place},{encode(self._counts[at])}"


def position(value_ns: int) -> int:
    """Return the index of the counter for a value in nanoseconds.

    Values below 0 and above `HIGHEST_NS` count as these limits.
    """
    value = min(max(value_ns, 0), HIGHEST_NS)
    bucket = max(value.bit_length() - _HALF_BITS - 1, 0)
    return (bucket << _HALF_BITS) + (value >> bucket)


def encode(counts: Mapping[int, int]) -> str:
    """Encode a histogram as base64 text; `counts`: number of values by index, as of `position`."""
    payload = b"".join(map(_zigzag, _runs(counts)))
    head = _HEAD.pack(_COOKIE, len(payload), 0, _DIGITS, 1, HIGHEST_NS, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(_OUTER_HEAD.pack(_COMPRESSED_COOKIE, len(packed)) + packed).decode()


def _runs(counts: Mapping[int, int]) -> Iterator[int]:
    """Yield the counts of all indexes up to the last; for each run of zeros, minus its length."""
    last = -1
    for at in sorted(counts):
        if at > last + 1:
            yield last + 1 - at
        yield counts[at]
        last = at


def _zigzag(value: int) -> bytes:
    """Return an integer in ZigZag and LEB128 encoding: seven bits per byte, lowest first."""
    number = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
