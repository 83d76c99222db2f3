"""A worker process forked from its supervisor, which has done the imports of worker processes.

The imports of Celery, numpy and redis take half a second of CPU, for each process that is started
as a program. Only a process without other threads can be forked safely.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, Self

#: What the supervisor handles by itself, and a new process as Python does.
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Between two looks at a process that ends, if the system cannot wait for one, seconds.
_POLL_S = 0.01
#: The first descriptor after the standard streams.
_FIRST = 3


def can_fork() -> bool:
    """Return whether the caller's is the only Python thread, so that a fork is safe."""
    return threading.active_count() == 1


class ForkedProcess:
    """A forked process that runs a function and ends; used as a `subprocess.Popen`."""

    def __init__(
        self,
        run: Callable[[Sequence[str]], object],
        arguments: Sequence[str],
        pass_fds: Collection[int],
    ) -> None:
        """Fork; the new process calls `run(arguments)`, then exits and never returns here.

        It has only the standard streams and the descriptors `pass_fds` open, and leads a process
        group. All present objects are exempt from garbage collection, here too. Raises OSError if
        it cannot be forked.
        """
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        # the objects that are there belong to all processes
        gc.freeze()
        # a signal that comes at once is for the process that it was sent to
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            with warnings.catch_warnings():
                # threads of numpy's libraries hold no locks of Python
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
            if not self.pid:
                _become(run, arguments, pass_fds)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        # also here, so that it is done when either goes on
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)

    @classmethod
    def adopt(cls, pid: int) -> Self:
        """Return the running child `pid`, which this process forked before it was replaced."""
        found = cls.__new__(cls)
        found.returncode, found.pid = None, pid
        return found

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to end and return its exit code, negative for a signal.

        Raises subprocess.TimeoutExpired after `timeout` seconds; None is without a limit.
        """
        if self.poll() is None:
            _await_end(self.pid, timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("worker process", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send signal `number` to the process, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process by SIGKILL, unless it has ended; does not wait for the end."""
        self.send_signal(signal.SIGKILL)


def _await_end(pid: int, timeout_s: float | None) -> None:
    """Wait until process `pid` has ended or `timeout_s` seconds are over (None: no limit).

    The exit code stays to be read by waitpid.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        # before Linux 5.3, and in some sandboxes and builds of Python
        _look_for_end(pid, timeout_s)
        return
    try:
        select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)


def _look_for_end(pid: int, timeout_s: float | None) -> None:
    deadline = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
    # leaves the process to be waited for
    seen = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, pid, seen) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _become(
    run: Callable[[Sequence[str]], object], arguments: Sequence[str], pass_fds: Collection[int]
) -> NoReturn:
    """Continue as the new process: call `run(arguments)`, then exit with a code; never returns.

    The code is as SystemExit says, 1 after another exception (its traceback is printed), else 0.
    Descriptors except `pass_fds` are closed, and the supervisor's signal handlers reset.
    """
    code = 1
    try:
        os.setpgid(0, 0)
        _close_others(pass_fds)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        sys.argv[1:] = arguments
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            # Python seeds its own generator again
            numpy_random.seed()
        run(arguments)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        sys.excepthook(*sys.exc_info())
    finally:
        # never back into the code of the supervisor
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _close_others(kept: Collection[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, no paths
        number = int(name)
        if number >= _FIRST and number not in kept:
            # that of the list itself is closed by now
            with contextlib.suppress(OSError):
                os.close(number)
