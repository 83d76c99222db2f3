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

# `typing` is not imported: it takes half a MB
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

#: Environment variable by which a supervisor gives its state to its rest, and gets it back.
STATE = "OSBENCH_SUPERVISED"
#: Signals that request the end. Blocked except during a wait, so none is lost between programs.
_ENDING = (signal.SIGTERM, signal.SIGINT)
#: Looks whether a child has ended; its exit code stays to be read.
_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
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


def go_on(state: Mapping[str, Any], command: Sequence[str]) -> None:
    """Rest again without the processes that have ended; returns if none is left.

    For a supervisor that cannot begin, as its configuration has become faulty: the others work on.
    """
    running = [one for one in state["children"] if os.waitpid(one[0], os.WNOHANG) == (0, 0)]
    if running:
        begin({**state, "children": running}, command)


def main(command: list[str]) -> None:
    """Wait until all processes have ended after a request; execute `command` if one ends before.

    SIGTERM and SIGINT request the end: SIGTERM goes to the processes, SIGKILL after `drain_s`. If
    one has left a will, `command` sends it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_ENDING, signal.SIGCHLD))
    state = json.loads(os.environ[STATE])
    pids, kill_at = [child[0] for child in state["children"]], 0.0

    def ask(*_: object) -> None:
        nonlocal kill_at
        if not kill_at:
            kill_at = time.monotonic() + state["drain_s"]
            for pid in pids:
                os.kill(pid, signal.SIGTERM)

    for number in _ENDING:
        signal.signal(number, ask)
    while True:
        running = [pid for pid in pids if os.waitid(os.P_PID, pid, _ENDED) is None]
        if len(running) < len(pids) and not kill_at:
            os.execv(command[0], command)  # noqa: S606 - ours, without a shell
        if not running:
            break
        if kill_at and time.monotonic() > kill_at:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
        _tell(state["life"], "draining" if kill_at else "running")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        # its result is arbitrary, SIGINT for example, after the process was stopped for longer
        signal.sigtimedwait((signal.SIGCHLD,), _LOOK_S)
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    # the first word of a page is 0 without a will
    if any(any(os.pread(child[2], 8, 0)) for child in state["children"]):
        # for the supervisor, which then ends as well
        os.kill(os.getpid(), signal.SIGTERM)
        os.execv(command[0], command)  # noqa: S606 - ours, without a shell
    for pid in pids:
        # so that the times of this process include theirs
        os.waitpid(pid, 0)
    if state["life"]:
        with contextlib.suppress(OSError):
            os.unlink(state["life"]["path"])  # noqa: PTH108 - pathlib takes a MB


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
