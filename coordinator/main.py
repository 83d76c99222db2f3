"""Entry point of `osbench-coord`: Ctrl-C during imports ends it without a traceback."""

from __future__ import annotations

import gc
import os
import signal

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

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command(prog_name="osbench-coord")
    finally:
        # all is said: a Ctrl-C that comes late changes no exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # else Python looks through all objects for garbage before it ends, which takes 0.1 s
        gc.freeze()


if __name__ == "__main__":
    main()
