"""Watchdog of local mode: after the coordinator's end, ends its processes and removes its folder.

Runs as a stand-alone file (`python -I -S watchdog.py PID`), so it only imports the standard
library. The coordinator's orderly shutdown uses the same functions. Reads Linux' /proc.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

#: Environment variable, set to the private folder, of all processes of local mode. It identifies
#: processes that were not registered yet when the coordinator was killed, and processes that have
#: left their session.
MARK = "OSBENCH_LOCAL_DIR"
#: Polling interval of the process table while processes end, seconds: first, factor, longest.
POLL_S = (0.01, 1.5, 0.25)
#: Seconds that processes get from SIGTERM to SIGKILL when the coordinator has ended.
GRACE_S = 2.0
#: Seconds after SIGKILL until it gives up: such a process is blocked in the kernel.
KILL_S = 3.0
#: The server's socket and its dump, in the private folder.
SOCKET, DUMP = "redis.sock", "dump.rdb"
#: Longest time for the server to write its dump, seconds.
DUMP_S = 30.0
#: Interval of the check that the coordinator is still the parent process, seconds.
_PARENT_S = 0.5


class Process(NamedTuple):
    """A process of this host, running or ended, as its entry in /proc was.

    Its start time distinguishes it from a later process with the same pid.
    """

    pid: int
    #: Pid of the process that leads the session, or led it.
    session: int
    #: Clock ticks from boot to the start.
    start: int


def find(pid: int, *, zombie: bool = True) -> Process | None:
    """Return the process with this pid; None if there is none, or for a zombie unless `zombie`.

    Reads the fields 3, 6 and 22 (state, session, start time) of proc_pid_stat(5).
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command's name may hold blanks and brackets
    if fields[0] in "ZX" and not zombie:
        return None
    return Process(pid=pid, session=int(fields[3]), start=int(fields[19]))


def _has_mark(pid: int, folder: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or belongs to another user
        return False
    return f"{MARK}={folder}".encode() in environment.split(b"\0")


def _has_leader(process: Process, leaders: Iterable[Process]) -> bool:
    """Return whether a process belongs to the session of a process in `leaders`.

    It must not be older than the leader, whose pid must be free or still its own. A pid that names
    a session is not reused: if a later process has the leader's pid, the leader's session is empty,
    and the process belongs to another one.
    """
    for leader in leaders:
        if process.session == leader.pid and process.start >= leader.start:
            now = find(leader.pid)
            if now is None or now.start == leader.start:
                return True
    return False


def belonging(
    leaders: Sequence[Process], folder: str | None, spared: Sequence[Process] = ()
) -> Iterator[Process]:
    """Yield running processes in the sessions of `leaders`, and processes marked with `folder`.

    Marked processes have the folder in their environment (`MARK`). Marked processes in the sessions
    of `spared` are left out, and so is this process.
    """
    for name in os.listdir("/proc"):  # noqa: PTH208 - Path.iterdir builds a Path per process
        one = find(int(name), zombie=False) if name.isdigit() else None
        if one is None or one.pid == os.getpid():
            continue
        marked = folder is not None and _has_mark(one.pid, folder)
        if _has_leader(one, leaders) or (marked and not _has_leader(one, spared)):
            yield one


def send(one: Process, number: int) -> None:
    """Send signal `number` to a process, unless it has ended; errors are ignored.

    A later process that has its pid gets no signal.
    """
    now = find(one.pid, zombie=False)
    if now and now.start == one.start:
        with contextlib.suppress(OSError):  # it has just ended, or changed its user
            os.kill(one.pid, number)


def end(
    leaders: Sequence[Process],
    grace_s: float,
    folder: str | None = None,
    spared: Sequence[Process] = (),
    hurried: Callable[[], bool] = lambda: False,
) -> bool:
    """End the processes of `belonging`: SIGTERM, and SIGKILL to those left after `grace_s`.

    Returns True when they have ended, False `KILL_S` seconds after SIGKILL. SIGKILL comes at once
    when `hurried` returns true, which is called while they are waited for. While leaders are
    running, only they get SIGTERM: they stop their children, and a process that gets a second one
    may drop its work. Otherwise the leader of each session gets it, or all if its leader has ended.
    """
    asked: set[Process] = set()
    kill_at = time.monotonic() + grace_s
    pause_s, factor, longest_s = POLL_S
    if grace_s > 0 and not hurried():
        # they end while other processes are looked for, which takes a moment
        asked = {one for one in leaders if find(one.pid, zombie=False) == one}
        _send_all(asked, signal.SIGTERM)
    while left := set(belonging(leaders, folder, spared)):
        now = time.monotonic()
        if now < kill_at and hurried():
            kill_at = now
        if now >= kill_at + KILL_S:
            return False
        if now >= kill_at:
            _send_all(left, signal.SIGKILL)
        else:
            heads = left.intersection(leaders) or _heads(left)
            _send_all(heads - asked, signal.SIGTERM)
            asked |= heads
        _await_end(left.intersection(leaders), pause_s)
        pause_s = min(pause_s * factor, longest_s)
    return True


def _await_end(leaders: set[Process], limit_s: float) -> None:
    """Wait until any process of `leaders` has ended, at most `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    with contextlib.ExitStack() as stack:
        ends = select.poll()
        for one in leaders:
            with contextlib.suppress(OSError, AttributeError):
                # there is none before Linux 5.3, in some sandboxes and builds of Python, and for
                # an ended process
                descriptor = os.pidfd_open(one.pid)
                stack.callback(os.close, descriptor)
                ends.register(descriptor, select.POLLIN)
        while (left_s := deadline - time.monotonic()) > 0:
            # a process that the system cannot wait for is looked at now and then
            ends.poll(1000 * min(left_s, POLL_S[0]))
            if any(find(one.pid, zombie=False) is None for one in leaders):
                return


def _heads(processes: set[Process]) -> set[Process]:
    pids = {one.pid for one in processes}
    return {one for one in processes if one.pid == one.session or one.session not in pids}


def _send_all(processes: Iterable[Process], number: int) -> None:
    for one in processes:
        send(one, number)


class Keeping(NamedTuple):
    """Paths in the directory of a run by which the watchdog saves the data of its private server.

    `resume` needs that data.
    """

    #: There as long as the run can be resumed.
    plan: str
    #: The dump of the server.
    dump: str
    #: Locked as long as somebody may write the dump.
    lock: str

    def keep(self, folder: Path) -> None:
        """Write the data of the server in `folder` to `dump`, if the run can be resumed.

        Errors are ignored. Called when the workers have ended: their last results have not been
        read. Results that cannot be saved are lost with the server.
        """
        if not Path(self.plan).exists():
            return
        # taken at the end only: the watchdog is to be small
        import shutil  # noqa: PLC0415 - see above
        import socket  # noqa: PLC0415 - see above

        draft = Path(f"{self.dump}.draft")
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.settimeout(DUMP_S)
                server.connect(str(folder / SOCKET))
                server.sendall(b"SAVE\r\n")
                if not server.recv(64).startswith(b"+OK"):
                    return
            shutil.copy(folder / DUMP, draft)
            draft.replace(self.dump)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()

    def take_lock(self) -> int | None:
        """Lock the dump; return the descriptor of the lock, None if another process has it.

        Raises OSError if the file cannot be locked.
        """
        found = os.open(self.lock, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(found)
            return None
        return found


class _Registered:
    def __init__(self) -> None:
        self.folder: str | None = None
        #: There from when something can be lost.
        self.keeping: Keeping | None = None
        self.workers: list[Process] = []
        self.servers: list[Process] = []
        #: The coordinator has ended all processes, and has seen their end.
        self.ended = False
        self._rest = b""

    def receive(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            record = json.loads(line)
            if "ended" in record:
                self.ended = True
            elif "folder" in record:
                self.folder = record["folder"]
            elif "dump" in record:
                self.keeping = Keeping(**record)
                # until this process has ended
                with contextlib.suppress(OSError):
                    self.keeping.take_lock()
            else:
                leaders = self.servers if record["role"] == "server" else self.workers
                leaders.append(Process(record["pid"], record["pid"], record["start"]))

    def clear(self) -> None:
        """End workers, save the server's data, end servers, remove the folder; as far as needed."""
        processes = [*self.workers, *self.servers]
        if self.ended or not any(belonging(processes, self.folder)):
            self._remove_folder()
            return
        end(self.workers, GRACE_S, self.folder, self.servers)
        if self.folder and self.keeping:
            self.keeping.keep(Path(self.folder))
        end(self.servers, GRACE_S, self.folder)
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self.folder:
            import shutil  # noqa: PLC0415 - as above

            shutil.rmtree(self.folder, ignore_errors=True)


def main(coordinator: int) -> None:
    """Take registrations from standard input until the coordinator has ended, then clean up.

    `coordinator` is its pid. It has ended when the input ends or it is no longer the parent
    process: a process forked from the coordinator, by a plug-in for example, keeps the pipe open.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    registered = _Registered()
    while os.getppid() == coordinator:
        if select.select([0], [], [], _PARENT_S)[0]:
            data = os.read(0, 65536)
            if not data:
                break
            registered.receive(data)
    os.set_blocking(0, False)
    while data := _read_rest():
        registered.receive(data)
    registered.clear()


def _read_rest() -> bytes:
    try:
        return os.read(0, 65536)
    except BlockingIOError:
        return b""


if __name__ == "__main__":
    main(int(sys.argv[1]))
    # somebody waits for it
    os._exit(0)
