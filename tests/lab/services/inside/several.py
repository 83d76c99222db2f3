"""Runs a command of a service several times, each in a fork: its imports take seconds, once.

The first argument is the command's function as MODULE:FUNCTION, the second its configuration file,
each other one the arguments of a call.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys


def main() -> None:
    """Run the calls one after another; the first that fails ends them."""
    module, _, function = sys.argv[1].partition(":")
    config, *calls = sys.argv[2:]
    command = getattr(importlib.import_module(module), function)
    for call in calls:
        child = os.fork()
        if not child:
            sys.argv = [module, "--config-file", config, *shlex.split(call)]
            sys.exit(command())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            sys.exit(f"{module} {call} ended with {code}")


if __name__ == "__main__":
    main()
