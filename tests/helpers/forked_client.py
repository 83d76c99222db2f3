"""Be a command in the shell of a test: the process that has imported osbench forks it.

A script of the standard library alone, which starts in a tenth of the time of osbench-coord. The
command has this process's arguments, folder, environment and streams, gets its signals, and gives
it its exit code. See `helpers.forked_commands`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from types import FrameType

#: What `helpers.forked_commands` sends: process id, later status as of `waitpid`; and CPU, seconds.
_WORD = struct.Struct("qd")


def main() -> None:
    """Have the command forked, and end as it does."""
    template = int(os.environ.pop("FORKED_COMMANDS"))
    costs = Path(os.environ.pop("FORKED_COSTS"))
    wanted = {"command": sys.argv[1:], "folder": str(Path.cwd()), "env": dict(os.environ)}
    ours, theirs = socket.socketpair()
    with theirs, socket.socket(fileno=template) as control:
        socket.send_fds(control, [json.dumps(wanted).encode()], [0, 1, 2, theirs.fileno()])
    pid, _ = _received(ours)

    def pass_on(number: int, _: FrameType | None) -> None:
        os.killpg(pid, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    status, spent_s = _received(ours)
    with costs.open("a", encoding="ascii") as file:
        file.write(f"{spent_s}\n")
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _received(connection: socket.socket) -> tuple[int, float]:
    data = connection.recv(_WORD.size, socket.MSG_WAITALL)
    assert data, "the template of osbench-coord has ended"
    number, seconds = _WORD.unpack(data)
    return int(number), float(seconds)


if __name__ == "__main__":
    main()
