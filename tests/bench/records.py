"""When a run's records were on disk: what no-op iterations cost is not over before that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgpack
import zstandard

from bench.stage import BenchError, Stage
from osbench.coordinator.results.storage.frames import read_frames

_POLL_S = 0.01
#: Length and CRC-32 before each record.
_HEAD = 8


class Watch:
    """Looks, while a run is on, how its file of result blocks grows.

    The stage's other runs must have been forgotten before.
    """

    def __init__(self, stage: Stage) -> None:
        self._folder = stage.data / "runs"
        #: Monotonic nanoseconds and bytes, each time the file had grown.
        self._growth: list[tuple[int, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def rate(self, stage: Stage, found: Mapping[str, Any]) -> float:
        """Iterations a second, from the start of the load until the last record was on disk.

        Raises BenchError where a record is missing.
        """
        path = stage.run_folder(found) / "blocks"
        records, begin_ns, last_byte = _extent(path)
        if records != found["workloads"][0]["accounting"]["ok"]:
            raise BenchError(f"{records} records were kept: {found['workloads'][0]['accounting']}")
        end_ns = next((at for at, size in self._growth if size >= last_byte), time.monotonic_ns())
        return records / ((end_ns - begin_ns) / 1e9)

    def _look(self) -> None:
        size = 0
        while not self._over.wait(_POLL_S):
            for path in self._folder.glob("*/blocks"):
                now = os.stat(path).st_size  # noqa: PTH116 - a hundred times a second
                if now > size:
                    size = now
                    self._growth.append((time.monotonic_ns(), size))


def _extent(path: Path) -> tuple[int, int, int]:
    """Rows kept, the start of the load (monotonic ns), and where the last row's block ends."""
    decompressor = zstandard.ZstdDecompressor()
    rows = place = last = 0
    begin_ns = time.monotonic_ns()
    for frame in read_frames(path):
        place += _HEAD + len(frame)
        packed = decompressor.decompress(frame)
        unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(packed))
        unpacker.feed(packed)
        for columns in filter(None, (body["columns"] for body in unpacker)):
            rows += columns["rows"]
            begin_ns = min(begin_ns, columns["t0"])
            last = place
    return rows, begin_ns, last
