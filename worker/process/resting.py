"""A supervisor at rest: it waits for its worker processes with a tenth of a supervisor's memory.

Runs as a stand-alone file (`python -P -S resting.py ...`) in the process of the supervisor, which
executes it once all worker processes have started: process id, children and descriptors stay. As
soon as something is to be decided, it executes the supervisor again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

#: Environment variable by which a supervisor gives its state to its rest, and gets it back.
STATE = "OSBENCH_SUPERVISED"
#: What ends a rest, or is passed on; blocked, so that none is lost between two programs.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
#: Interval of signs of life, and of looks at processes that are to end, seconds.
_LOOK_S = 1.0


def begin(state: dict[str, Any], command: Sequence[str]) -> NoReturn:
    """Execute this file instead of the present program, and `command` when the rest ends.

    SIGTERM and SIGINT must be blocked. Keys of `state`: `children` (lists of process id, start in
    monotonic seconds, descriptor of the page), `lifeline` (two descriptors), `drain_s` (limit from
    SIGTERM to SIGKILL, seconds), `life` (descriptor, size, path and facts of the life record, or
    None).
    """
    life = state["life"]
    kept = [*state["lifeline"], *(child[2] for child in state["children"])]
    for number in [*kept, life["fd"]] if life else kept:
        os.set_inheritable(number, True)
    os.environ[STATE] = json.dumps({**state, "pid": os.getpid()})
    # unlike -I, -P lets the environment say where a moved Python is
    arguments = ["-P", "-S", __file__, "osbench-worker", *command]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - ours, without a shell


def take_state() -> dict[str, Any] | None:
    """Remove and return the `state` with which this process went to rest; None if it did not."""
    with contextlib.suppress(ValueError, AttributeError):
        state = json.loads(os.environ.pop(STATE, "null"))
        # a variable of another process means nothing here
        return dict(state) if state.get("pid") == os.getpid() else None
    return None


def main(command: list[str]) -> None:
    """Wait until all processes have ended after a request; execute `command` if one ends before.

    SIGTERM and SIGINT request the end: SIGTERM goes to the processes, SIGKILL after `drain_s`. If
    one has left a will, `command` sends it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    state = json.loads(os.environ[STATE])
    pids = [child[0] for child in state["children"]]
    asked, kill_at = False, 0.0
    while True:
        running = [pid for pid in pids if not _has_ended(pid)]
        if len(running) < len(pids) and not asked:
            os.execv(command[0], command)  # noqa: S606 - ours, without a shell
        if not running:
            break
        if asked and time.monotonic() > kill_at:
            _send(running, signal.SIGKILL)
        _tell(state["life"], "draining" if asked else "running")
        got = signal.sigtimedwait(_SIGNALS, _LOOK_S)
        if got is not None and got.si_signo != signal.SIGCHLD and not asked:
            asked, kill_at = True, time.monotonic() + state["drain_s"]
            _send(running, signal.SIGTERM)
    # the first word of a page is 0 without a will
    if any(any(os.pread(child[2], 8, 0)) for child in state["children"]):
        # for the supervisor, which then ends as well
        os.kill(os.getpid(), signal.SIGTERM)
        os.execv(command[0], command)  # noqa: S606 - ours, without a shell
    if state["life"]:
        with contextlib.suppress(OSError):
            os.unlink(state["life"]["path"])  # noqa: PTH108 - pathlib takes a MB


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended; its exit code stays to be read."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _send(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        os.kill(pid, number)


def _tell(life: dict[str, Any] | None, state: str) -> None:
    """Write the life record as `LifeRecord.tell` does."""
    if life:
        now = time.monotonic()
        record = {**life["facts"], "state": state, "told": now, "turned": now}
        with contextlib.suppress(OSError):
            os.pwrite(life["fd"], json.dumps(record).encode().ljust(life["size"]), 0)


if __name__ == "__main__":
    main(sys.argv[2:])
    # somebody waits for it
    os._exit(0)
