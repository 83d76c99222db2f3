"""Threads, locks and events, by the names of `threading`.

- `Thread`: runs concurrently from `start` on. `join(timeout)` may return late.
- `Event`, `Condition`: `wait(timeout)` is never over early without a reason, and may end late.
- `Lock`: which of several waiting threads gets it next is not known.
- `current_thread`, `main_thread`, `get_ident`: an identity is unique among the threads that run.
- `get_native_id`: the thread's number at the kernel, for files of /proc.

Timers, semaphores, queues and thread pools are missing on purpose: a simulation has to schedule
each thread, and those start or wake further threads.
"""

from __future__ import annotations

from threading import (
    TIMEOUT_MAX,
    Condition,
    Event,
    Lock,
    Thread,
    current_thread,
    get_ident,
    get_native_id,
    main_thread,
)

__all__ = [
    "TIMEOUT_MAX",
    "Condition",
    "Event",
    "Lock",
    "Thread",
    "current_thread",
    "get_ident",
    "get_native_id",
    "main_thread",
]
