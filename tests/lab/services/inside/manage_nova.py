"""Runs several nova-manage commands, one an argument, each in a fork: imports take 2 s, once."""

from __future__ import annotations

import os
import sys

from nova.cmd import manage

config, *commands = sys.argv[1:]
for command in commands:
    child = os.fork()
    if not child:
        sys.argv = ["nova-manage", "--config-file", config, *command.split()]
        sys.exit(manage.main())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        sys.exit(f"nova-manage {command} ended with {code}")
