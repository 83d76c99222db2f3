"""The option `--timeout` of commands that query servers: it ends them, whatever hangs."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from osbench.common.errors import OsbenchError
from osbench.coordinator.front.cli.base import DurationType
from osbench.coordinator.front.cli.options.option_table import option, options

R = TypeVar("R")

#: Default of the option, seconds.
TIMEOUT_S = 60.0
#: Between two errors of a command whose time is over, seconds.
AGAIN_S = 1.0


class TimeOver(OsbenchError):
    """A command has not ended within its `--timeout`; exit code 3."""

    exit_code = 3


def timeout_option(default_s: float = TIMEOUT_S) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a command with `--timeout`; it gets the seconds as argument `timeout_s`.

    Nothing enforces the limit: the command has to.
    """
    return options(
        timeout_s=option(
            "--timeout",
            type=DurationType(0.1),
            default=default_s,
            show_default=True,
            metavar="DURATION",
            help="Longest time that the command may take, in all.",
        )
    )


def time_limit(default_s: float = TIMEOUT_S) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a command with `--timeout`, which it does not see; TimeOver ends it after that.

    `default_s`: default of the option, seconds.
    """

    def limited(command: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(command)
        def wrapped(*args: Any, timeout_s: float, **kwargs: Any) -> R:
            with ended_after(timeout_s):
                return command(*args, **kwargs)

        return timeout_option(default_s)(wrapped)

    return limited


@contextmanager
def ended_after(timeout_s: float) -> Iterator[None]:
    """Raise TimeOver in the main thread if this block takes longer than `timeout_s` seconds.

    Raised again every `AGAIN_S` seconds, while the block goes on. No limit in other threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_: int, frame: FrameType | None) -> None:
        raise TimeOver(f"not done within {timeout_s:g} s (--timeout){_waited_in(frame)}")

    before = signal.signal(signal.SIGALRM, end)
    # a command that goes on with its next question has its time over there, too
    signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _waited_in(frame: FrameType | None) -> str:
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("osbench."):
            return f"; it waited in {module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return ""
