"""osbench-coord without the time of its imports: a process that has them forks each command.

A command of osbench-coord takes about half a second of CPU to import its modules, and tests run
hundreds. As a script this module is the process that has imported them; it forks a child for each
request, which has the arguments, folder, environment and files of the request, its own session, and
ends as any Python process does. Another one has Rally's plug-ins, too, which take two seconds: it
is for commands of homes without a configuration and plug-ins of Rally. Tests of what a process is
from its start (signals, arguments that others can read, console scripts) and that of the README
start the command as a shell does: `Site.start` and `helpers.machine`. Shells of other documents
have `forked_client`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

#: Largest request: arguments and environment, bytes.
_REQUEST = 192 * 1024
#: What the template sends of a command: its process id, later its status as of `waitpid`; and the
#: CPU that it took with those that it has waited for, seconds.
_WORD = struct.Struct("qd")
#: Seconds until the template has imported all, on a machine with other work.
_READY_S = 120.0
#: Variables that Python reads when it starts.
_STARTING = ("PYTHON", "LANG", "LC_")

#: CPU of each command that was forked and has ended, seconds: no child of this process.
cpu_s: list[float] = []


def run(
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    within_s: float,
    rally: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run osbench-coord to its end in `folder`, with exactly this environment and empty stdin.

    With `rally` it is a fork of the process that has Rally's plug-ins. Raises AssertionError, which
    has what it said, if it has not ended `within_s` seconds later.
    """
    command = ["osbench-coord", *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            code = run_into(
                (out, err), arguments, folder=folder, env=env, within_s=within_s, rally=rally
            )
        except TimeoutError:
            said = f"{_text(out)}\n{_text(err)}"[-4000:]
            raise AssertionError(f"{command} does not end within {within_s} s: {said}") from None
        return subprocess.CompletedProcess(command, code, _text(out), _text(err))


def put_command(
    path: Path, env: Mapping[str, str], *, rally: bool = False
) -> tuple[dict[str, str], list[int]]:
    """Write the script of an osbench-coord for shells that have `env`, which forks each command.

    `rally` as in `run`. Returns variables for the shell, and file descriptors that it has to
    inherit. Writes nothing, and both are empty, if commands with `env` have to start as processes.
    """
    if not _can_be_forked(env):
        return {}, []
    client = Path(__file__).with_name("forked_client.py")
    text = f"""\
        #!/bin/sh
        [ -n "$FORKED_COMMANDS" ] || exec {Path(sys.executable).parent}/osbench-coord "$@"
        exec {sys.executable} -I -S {client} "$@"
        """
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    path.chmod(0o755)
    number = _template(rally).fileno()
    costs = path.with_name("costs")
    return {"FORKED_COMMANDS": str(number), "FORKED_COSTS": str(costs)}, [number]


def count_costs(folder: Path) -> None:
    """Add to `cpu_s` what the commands of `put_command` took whose script lies in `folder`."""
    costs = folder / "costs"
    if costs.exists():
        cpu_s.extend(map(float, costs.read_text("ascii").split()))
        costs.unlink()


def run_into(
    files: Sequence[IO[bytes]],
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    within_s: float,
    rally: bool = False,
) -> int:
    """Run osbench-coord as `run` does with these files as stdout and stderr; its exit code.

    Raises TimeoutError if it has not ended `within_s` seconds later.
    """
    start = functools.partial(_fork, rally) if _can_be_forked(env) else _execute
    pid, wait = start(arguments, folder, env, files)
    try:
        return wait(within_s)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if isinstance(error, subprocess.TimeoutExpired):
            raise TimeoutError(str(error)) from None
        raise


class Forked:
    """A command that was forked and may run: what tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, wait: Callable[[float], int], out: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._wait = wait
        self._out = out

    def poll(self) -> int | None:
        """Exit code; None while it runs."""
        with contextlib.suppress(BlockingIOError):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float = _READY_S) -> int:
        """Wait for the end; exit code. Raises TimeoutError."""
        if self.returncode is None:
            self.returncode = self._wait(timeout)
        return self.returncode

    def communicate(self, timeout: float = _READY_S) -> tuple[str, str]:
        """What it has written to stdout until its end. Raises TimeoutError."""
        self.wait(timeout)
        return self._out.read_text("utf-8", errors="surrogateescape"), ""

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)


def start(
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    files: Sequence[Path],
    rally: bool = False,
) -> Forked | None:
    """Fork osbench-coord, in its own session, with these files as stdout and stderr.

    `rally` as in `run`. Returns None if a command with `env` has to start as a process.
    """
    if not _can_be_forked(env):
        return None
    with files[0].open("wb") as out, files[1].open("wb") as err:
        pid, wait = _fork(rally, arguments, folder, env, (out, err))
    return Forked(pid, wait, files[0])


#: Process id of a started command, and what waits for its exit code.
Started = tuple[int, Callable[[float], int]]


def _execute(
    arguments: Sequence[str], folder: Path, env: Mapping[str, str], files: Sequence[IO[bytes]]
) -> Started:
    """Start the command as a shell does."""
    out, err = files
    process = subprocess.Popen(
        ["osbench-coord", *arguments],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )
    return process.pid, process.wait


def _fork(
    rally: bool,
    arguments: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    files: Sequence[IO[bytes]],
) -> Started:
    """Have the template fork it."""
    ours, theirs = socket.socketpair()
    request = json.dumps({"arguments": arguments, "folder": str(folder), "env": dict(env)}).encode()
    assert len(request) < _REQUEST
    with theirs, Path(os.devnull).open("rb") as nothing:
        numbers = [file.fileno() for file in (nothing, *files, theirs)]
        socket.send_fds(_template(rally), [request], numbers)
    ours.settimeout(_READY_S)
    pid, _ = _received(ours)

    def wait(within_s: float) -> int:
        ours.settimeout(within_s)
        status, spent_s = _received(ours)
        ours.close()
        cpu_s.append(spent_s)
        return os.waitstatus_to_exitcode(status)

    return pid, wait


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="surrogateescape")


def _can_be_forked(env: Mapping[str, str]) -> bool:
    """Whether Python would read at its start what the template has read, and nobody measures."""
    measured = any(name.startswith("COV") for name in env)
    return not measured and _starting(env) == _starting(os.environ)


def _starting(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_STARTING)}


@functools.cache
def _template(rally: bool) -> socket.socket:
    """The way to a template of this process, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _REQUEST)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno()), *(["rally"] * rally)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _received(connection: socket.socket) -> tuple[int, float]:
    data = connection.recv(_WORD.size, socket.MSG_WAITALL)
    assert data, "the template of osbench-coord has ended"
    number, seconds = _WORD.unpack(data)
    return int(number), float(seconds)


def import_all(*, rally: bool) -> None:
    """Import the modules that commands import, so that a child finds them; with Rally's plug-ins.

    The plug-ins are not those of the user who runs the tests.
    """
    for package in ("osbench.common", "osbench.coordinator"):
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            # what an optional dependency is missing for is missing for the command, too
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    if rally:
        os.environ["HOME"] = os.devnull
        importlib.import_module("osbench.common.rally.importing").load()
    # a child that ends would look through all of it, and copy each page on the way
    gc.freeze()


def serve(control: socket.socket) -> None:
    """Fork a command for each request; returns in the child, and ends with the tests' process."""
    running: dict[int, socket.socket] = {}
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([control, reading], [], [])
        if reading in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(reading, 4096)
            _report(running)
        if control not in ready:
            continue
        request, files, _, _ = socket.recv_fds(control, _REQUEST, 4)
        if not request:
            os._exit(0)
        status = socket.socket(fileno=files.pop())
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(json.loads(request), files)
            return
        for file in files:
            os.close(file)
        status.sendall(_WORD.pack(child, 0.0))
        running[child] = status


def _report(running: dict[int, socket.socket]) -> None:
    for child in list(running):
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            with running.pop(child) as connection, contextlib.suppress(OSError):
                connection.sendall(_WORD.pack(status, used.ru_utime + used.ru_stime))


def _become(request: Mapping[str, object], files: Sequence[int]) -> None:
    """Make this process one that was started with what a request says."""
    os.setsid()
    os.chdir(str(request["folder"]))
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, max(files) + 64)
    os.environ.clear()
    os.environ.update(request["env"])  # type: ignore[arg-type]
    time.tzset()
    tempfile.tempdir = None
    random.seed()
    sys.argv = ["osbench-coord", *request["arguments"]]  # type: ignore[misc]


def main() -> NoReturn:
    """Be the template, and then in each child the command."""
    control = socket.socket(fileno=int(sys.argv[1]))
    import_all(rally=sys.argv[2:] == ["rally"])
    serve(control)
    control.detach()
    from osbench.coordinator.main import main as command

    sys.exit(command())


if __name__ == "__main__":
    main()
