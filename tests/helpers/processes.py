"""Whether a process that a test has to do with still lives."""

import psutil


def is_living(process: psutil.Process | int) -> bool:
    """Whether a process, or that of a process id, is there and no zombie."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
