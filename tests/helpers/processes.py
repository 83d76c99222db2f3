"""Processes that a test has to do with, which may end at any moment."""

import contextlib
from pathlib import Path

import psutil


def is_living(process: psutil.Process | int) -> bool:
    """Whether a process, or that of a process id, is there and no zombie."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command_of(process: psutil.Process) -> str:
    """The command line of a process; "" once it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def holds(process: int, path: Path) -> bool:
    """Whether a process has a file open, such as the lock of a run that it coordinates."""
    with contextlib.suppress(OSError):
        opened = Path(f"/proc/{process}/fd").iterdir()
        return any(one.exists() and one.samefile(path) for one in opened)
    return False


def holder_of(path: Path) -> psutil.Process:
    """The one process of this user that has a file open."""
    (found,) = [process for process in psutil.process_iter() if holds(process.pid, path)]
    return found
