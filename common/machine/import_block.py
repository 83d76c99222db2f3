"""Imports without garbage collection: modules stay, so that it would find nothing to collect."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def import_block() -> Iterator[None]:
    """Pause garbage collection in the block; if it imported modules, exempt all present objects.

    Later collections skip exempt objects. Does nothing if collection is off, as in an inner block.
    """
    if not gc.isenabled():
        yield
        return
    known = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
        gc.enable()
