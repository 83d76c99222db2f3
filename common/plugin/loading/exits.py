"""Keeps plug-ins from ending the process that they run in."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

from osbench.common.ports import threads as threading

LOG = logging.getLogger(__name__)


def refuse_exits() -> Callable[[int], NoReturn]:
    """Replace `os._exit` in this process by a function that raises SystemExit; return the original.

    `os._exit` would end the process without naming its caller. Forked processes still end by it.
    Outside the main thread the call is also logged as a warning with its line.
    """
    really, here = os._exit, os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != here:
            really(status)
        if threading.current_thread() is not threading.main_thread():
            # Python passes over a SystemExit of a thread that the plug-in has started
            caller = sys._getframe(1)
            place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
            LOG.warning("os._exit(%s) was called and refused: %s", status, place)
        raise SystemExit(f"os._exit({status}) was called: a plug-in must not end its process")

    os._exit = refuse
    return really


@contextlib.contextmanager
def exits_refused() -> Iterator[None]:
    """Replace `os._exit` within the block by a function that raises SystemExit."""
    really = refuse_exits()
    try:
        yield
    finally:
        os._exit = really  # type: ignore[assignment]  # but for the name of its parameter
