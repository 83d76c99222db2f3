"""The file `timeline` of a run directory: what a run came to over time, also while it goes on."""

from __future__ import annotations

from typing import Any

import msgpack
import zstandard

from osbench.common.decompression import decompressed
from osbench.common.protocol.unpacking import unpack
from osbench.common.regular_files import read_regular
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.summary_file import is_summary

#: File of the run directory, and the version of its format.
TIMELINE = "timeline"
FORMAT = 1
#: Most bytes that are read of it, decompressed.
BYTES = 512 << 20


def write_timeline(directory: RunDirectory, document: dict[str, Any], *, sync: bool) -> None:
    """Replace the timeline in one step; `sync` waits for the disk. Raises StorageError."""
    packed = msgpack.packb({"format": FORMAT, **document})
    directory.replace(TIMELINE, zstandard.ZstdCompressor(level=1).compress(packed), sync=sync)


def read_timeline(directory: RunDirectory) -> dict[str, Any] | None:
    """The timeline; None where there is none, or one that this version cannot read.

    Raises DamagedRun if it is not as its run has left it.
    """
    directory.files.check(TIMELINE)
    try:
        packed = read_regular(directory.path / TIMELINE, BYTES)
        found: Any = unpack(decompressed(packed, BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return None
    workloads: Any = found.get("workloads")
    summary: Any = found.get("summary")
    if not isinstance(workloads, list) or not is_summary(summary):
        return None
    return found if len(workloads) == len(summary["workloads"]) else None
