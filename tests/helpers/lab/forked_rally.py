"""Rally's command without the time of its imports: a process that has them forks each command.

A command of Rally takes two seconds of CPU to import its plug-ins. Each line of standard input is a
request: arguments, folder, environment, and files for the output. The answer is a line with exit
code and CPU.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn


def run(request: Mapping[str, Any]) -> NoReturn:
    """Be the command of a request."""
    os.chdir(request["folder"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.environ.clear()
    os.environ.update(request["env"])
    # names of what a task makes are drawn
    random.seed()
    sys.argv = ["rally", *request["arguments"]]
    from rally.cli.main import main as command

    sys.exit(command())


def main() -> None:
    """Fork a command for each request."""
    import rally.cli.main  # noqa: F401 - children find it imported
    from rally import plugins

    plugins.load()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        _, status, used = os.wait4(child, 0)
        spent_s = used.ru_utime + used.ru_stime
        print(os.waitstatus_to_exitcode(status), spent_s, flush=True)


if __name__ == "__main__":
    main()
