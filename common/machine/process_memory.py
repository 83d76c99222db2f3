"""Memory of this process, as Linux counts it in /proc/self/statm (proc_pid_statm(5))."""

from __future__ import annotations

import resource
from pathlib import Path


def address_space_bytes() -> int:
    """Return the address space that this process uses, in bytes; 0 if unknown."""
    return _bytes(0)


def resident_bytes() -> int:
    """Return the resident memory of this process, shared pages included, in bytes; 0 if unknown."""
    return _bytes(1)


def _bytes(field: int) -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field])
    except OSError:
        return 0
    return pages * resource.getpagesize()
