"""osbench's commands without the time of their imports: a process that has them forks each command.

A command of osbench-coord takes about half a second of CPU to import its modules, a worker process
a second, and tests run hundreds. As a script this module is the process that has imported them; it
forks a child for each request, which has the arguments, folder, environment and files of the
request, its own session, and ends as any Python process does. The workers of its local mode are
forked, too, and so are the worker processes of an osbench-worker. Another process has Rally's
plug-ins, which take two seconds more: it is for homes without a configuration and plug-ins of
Rally. Tests of what a process is from
its start (signals, arguments that others can read, console scripts) and that of the README start
the command as a shell does: `Site.start` and `helpers.machine`. Shells of other documents have
`forked_client`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import logging
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
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

#: Largest request: arguments and environment, bytes.
_REQUEST = 192 * 1024
#: What the template sends of a command: its process id, later its status as of `waitpid`; and the
#: CPU that it took with those that it has waited for, seconds.
_WORD = struct.Struct("qd")
#: Seconds until the template has imported all, on a machine with other work.
_READY_S = 120.0
#: Variables that Python reads when it starts.
_STARTING = ("PYTHON", "LANG", "LC_")
#: Room for the arguments and the environment that others read of a command, bytes.
_SHOWN_ARGUMENTS, _SHOWN_VARIABLES = 4096, 96 * 1024

COORD, WORKER = "osbench-coord", "osbench-worker"
#: The template that has Rally's plug-ins.
RALLY = "rally"

#: CPU of each command that was forked and has ended, seconds: no child of this process.
cpu_s: list[float] = []


def run(
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    within_s: float,
    program: str = COORD,
    host: int = 0,
    rally: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in `folder`, with exactly this environment and empty stdin.

    `host`: a process whose namespaces of network, name and mounts it gets, if it can be forked.
    With `rally` it is a fork of the process that has Rally's plug-ins.

    Raises AssertionError, which has what it said, if it has not ended `within_s` seconds later.
    """
    command = [program, *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            code = run_into(
                (out, err),
                arguments,
                folder=folder,
                env=env,
                within_s=within_s,
                program=program,
                host=host,
                rally=rally,
            )
        except TimeoutError:
            said = f"{_text(out)}\n{_text(err)}"[-4000:]
            raise AssertionError(f"{command} does not end within {within_s} s: {said}") from None
        return subprocess.CompletedProcess(command, code, _text(out), _text(err))


class Command:
    """A command that was forked and goes on; used as a `subprocess.Popen`."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        """`status` is where the template tells its end."""
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if self.returncode is None:
            ready, _, _ = select.select([self._status], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("forked command", timeout or 0.0)
            with self._status:
                status, spent_s = _received(self._status)
            cpu_s.append(spent_s)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def begin(
    command: Sequence[str],
    files: Sequence[IO[bytes]],
    *,
    folder: Path,
    env: Mapping[str, str],
    host: int = 0,
    rally: bool = False,
) -> Command | subprocess.Popen[bytes]:
    """Start a command with these files as stdout and stderr; does not wait.

    `host` and `rally` as of `run`.
    """
    if not can_be_forked(env):
        out, err = files
        return subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    pid, status = _asked(command, folder, env, files, host, rally)
    status.settimeout(None)
    return Command(pid, status)


def put_commands(
    folder: Path, env: Mapping[str, str], *, rally: bool = False
) -> tuple[dict[str, str], list[int]]:
    """Write scripts of osbench's commands for shells that have `env`, which fork each command.

    Returns variables for the shell, and file descriptors that it has to inherit. Writes nothing,
    and both are empty, if commands with `env` have to start as processes.
    """
    if not can_be_forked(env):
        return {}, []
    client = Path(__file__).with_name("forked_client.py")
    for program in (COORD, WORKER):
        text = f"""\
            #!/bin/sh
            [ -n "$FORKED_COMMANDS" ] || exec {Path(sys.executable).parent}/{program} "$@"
            exec {sys.executable} -I -S {client} {program} "$@"
            """
        path = folder / program
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        path.chmod(0o755)
    number = _template(rally).fileno()
    return {"FORKED_COMMANDS": str(number), "FORKED_COSTS": str(folder / "costs")}, [number]


def count_costs(folder: Path) -> None:
    """Add to `cpu_s` what the commands of `put_commands` took whose scripts lie in `folder`."""
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
    program: str = COORD,
    host: int = 0,
    rally: bool = False,
) -> int:
    """Run a command as `run` does with these files as stdout and stderr; its exit code.

    Raises TimeoutError if it has not ended `within_s` seconds later.
    """
    start = functools.partial(_fork, host, rally) if can_be_forked(env) else _execute
    pid, wait = start([program, *arguments], folder, env, files)
    try:
        return wait(within_s)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if isinstance(error, subprocess.TimeoutExpired):
            raise TimeoutError(str(error)) from None
        raise


#: Process id of a started command, and what waits for its exit code.
Started = tuple[int, Callable[[float], int]]


def _execute(
    command: Sequence[str], folder: Path, env: Mapping[str, str], files: Sequence[IO[bytes]]
) -> Started:
    """Start the command as a shell does."""
    out, err = files
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )
    return process.pid, process.wait


def _fork(
    host: int,
    rally: bool,
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    files: Sequence[IO[bytes]],
) -> Started:
    """Have the template fork it."""
    pid, ours = _asked(command, folder, env, files, host, rally)

    def wait(within_s: float) -> int:
        ours.settimeout(within_s)
        with ours:
            status, spent_s = _received(ours)
        cpu_s.append(spent_s)
        return os.waitstatus_to_exitcode(status)

    return pid, wait


def _asked(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    files: Sequence[IO[bytes]],
    host: int,
    rally: bool,
) -> tuple[int, socket.socket]:
    """Process id of a new command, and where the template tells its end."""
    ours, theirs = socket.socketpair()
    wanted = {"command": command, "folder": str(folder), "env": dict(env), "host": host}
    request = json.dumps(wanted).encode()
    assert len(request) < _REQUEST
    with theirs, Path(os.devnull).open("rb") as nothing:
        numbers = [file.fileno() for file in (nothing, *files, theirs)]
        socket.send_fds(_template(rally), [request], numbers)
    ours.settimeout(_READY_S)
    pid, _ = _received(ours)
    return pid, ours


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="surrogateescape")


def can_be_forked(env: Mapping[str, str]) -> bool:
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
            [
                *(sys.executable, "-P", __file__, str(theirs.fileno())),
                RALLY if rally else "plain",
                "-" * _SHOWN_ARGUMENTS,
            ],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "FORKED_ROOM": "-" * _SHOWN_VARIABLES},
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
    from osbench.common.plugin import entry_points
    from osbench.worker.process import prepared_start

    for name in ("osbench.worker.main", *prepared_start._MODULES):
        importlib.import_module(name)
    entry_points.names("scenario")
    if rally:
        os.environ["HOME"] = os.devnull
        importlib.import_module("osbench.edges.rally.importing").load()
    # a child that ends would look through all of it, and copy each page on the way
    gc.freeze()


def serve(control: socket.socket) -> None:
    """Fork a command for each request; returns in the child, and ends with the tests' process."""
    running: dict[int, socket.socket] = {}
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([control, reading, *running.values()], [], [])
        for child, asking in running.items():
            # nobody sends anything there: who waited for the command has ended, or lets it go
            if asking in ready:
                _kill(child)
        if reading in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(reading, 4096)
            _report(running)
        if control not in ready:
            continue
        request, files, _, _ = socket.recv_fds(control, _REQUEST, 4)
        if not request:
            for child in running:
                _kill(child)
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


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _report(running: dict[int, socket.socket]) -> None:
    for child in list(running):
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            with running.pop(child) as connection, contextlib.suppress(OSError):
                connection.sendall(_WORD.pack(status, used.ru_utime + used.ru_stime))


def _become(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Make this process one that was started with what a request says."""
    os.setsid()
    if request.get("host"):
        _enter(request["host"])
    os.chdir(request["folder"])
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, max(files) + 64)
    sys.argv = request["command"]
    _take_over(sys.argv, request["env"])


def _enter(host: int) -> None:
    """Have the network, the name and the mounts of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    # the mounts last: they have a /proc of their own
    for name in ("net", "uts", "mnt"):
        with Path(f"/proc/{host}/ns/{name}").open("rb") as namespace:
            if libc.setns(namespace.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {namespace.name}")


def _take_over(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Have the environment of a new process, which others read with its arguments in /proc."""
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None
    random.seed()
    # proc_pid_stat(5), from the third field on; Python has copies of what is there
    fields = Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()
    arguments_at, arguments_end, variables_at, variables_end = map(int, fields[45:49])
    variables = [f"{name}={value}" for name, value in env.items()]
    for at, end, shown in (
        (arguments_at, arguments_end, command),
        (variables_at, variables_end, variables),
    ):
        data = b"".join(os.fsencode(one) + b"\0" for one in shown)
        assert len(data) < end - at, "there is room for what commands of tests have"
        ctypes.memmove(at, data.ljust(end - at, b"\0"), end - at)


def _fork_local_workers() -> None:
    """Have local mode fork its workers, once: at first nothing of a run has happened here."""
    from osbench.coordinator.load.local import child, local_start

    left = [local_start._COMMAND] if sys.argv[1:2] == ["run"] else []

    def popen(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        if command not in left or threading.active_count() > 1:
            return subprocess.Popen(command, **options)
        left.clear()
        # what runs before a program begins, and here never returns
        become = functools.partial(_be_prepared_worker, command, options["env"])
        return subprocess.Popen(command, preexec_fn=become, **options)  # noqa: PLW1509 - no threads

    child.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": popen})  # type: ignore[assignment]


def _be_prepared_worker(command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    code = 1
    try:
        gc.enable()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # with the pipe by which a failed start would be told: the coordinator goes on
        os.closerange(3, 256)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, how, closefd=False) for number, how in enumerate("rww")
        )
        logging.getLogger().handlers.clear()
        sys.argv = ["osbench-worker", "--prepared"]
        _take_over(command, env)
        from osbench.worker.main import main as worker

        worker.main(sys.argv[1:], prog_name="osbench-worker")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _be_worker() -> NoReturn:
    from osbench.worker.main import main as worker

    worker(prog_name="osbench-worker")
    raise AssertionError("click ends the process")


def main() -> NoReturn:
    """Be the template, and then in each child the command."""
    control = socket.socket(fileno=int(sys.argv[1]))
    import_all(rally=sys.argv[2] == RALLY)
    serve(control)
    control.detach()
    if sys.argv[0] == WORKER:
        _be_worker()
    _fork_local_workers()
    from osbench.coordinator.main import main as command

    sys.exit(command())


if __name__ == "__main__":
    main()
