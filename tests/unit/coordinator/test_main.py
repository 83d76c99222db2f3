"""The entry of `osbench-coord`."""

from __future__ import annotations

import signal
import subprocess
import sys

#: A command that has ended, and a Ctrl-C while Python cleans up.
LATE = """
import atexit, os, signal, sys
import osbench.coordinator.front.cli
from osbench.coordinator.main import main

def command(prog_name):
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
    sys.exit(7)

osbench.coordinator.front.cli.main = command
main()
"""


def test_a_ctrl_c_that_comes_late_changes_no_exit_code():
    def as_in_a_terminal() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    done = subprocess.run(
        [sys.executable, "-c", LATE],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=as_in_a_terminal,
    )

    assert (done.returncode, done.stderr) == (7, "")
