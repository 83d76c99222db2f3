"""Entry point of `osbench-coord`: Ctrl-C during imports ends it without a traceback."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable

from osbench.common.config.foreign_environment import drop_foreign_variables
from osbench.common.config.standard_streams import secure_standard_streams
from osbench.common.machine.import_block import import_block


def main() -> None:
    """Import the commands and run the command line; ends the process by SystemExit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    secure_standard_streams()
    drop_foreign_variables(os.environ)
    with import_block():
        from osbench.common.config import logs  # noqa: PLC0415 - takes a moment
        from osbench.coordinator.front.cli import main as command  # noqa: PLC0415 - takes a moment

        logs.quieten()

    ending: list[object] = []
    # registered first, it is called last
    atexit.register(_end, ending, os._exit)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command(prog_name="osbench-coord")
    except SystemExit as end:
        ending.append(end.code)
        raise
    finally:
        # all is said: a Ctrl-C that comes late changes no exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(ending: list[object], exit_at_once: Callable[[int], object]) -> None:
    """End the process by its exit code; Python would free each object before, which takes 50 ms."""
    for code in ending:
        if isinstance(code, int):
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
                exit_at_once(code)


if __name__ == "__main__":
    main()
