"""Processes that a test has to do with, which may end at any moment."""

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
