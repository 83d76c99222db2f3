"""Runs requests to servers at the same time, with a common deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Answer = TypeVar("Answer")

#: Threads that ask.
AT_ONCE = 8


def call_within(total_s: float, act: Callable[..., Answer], *given: Any, **options: Any) -> Answer:
    """Return the result of `act`, called with `given` and `options` in a daemon thread.

    Raises TimeoutError if it takes longer than `total_s` seconds; the call goes on in its thread.
    Exceptions of `act` are raised.
    """
    # in a tuple: None means that there is no result in time
    (found,) = at_once([lambda: (act(*given, **options),)], time.monotonic() + total_s)
    if found is None:
        raise TimeoutError(f"not over within {total_s:g} s")
    return found[0]


def at_once(questions: Sequence[Callable[[], Answer]], until: float) -> list[Answer | None]:
    """Call functions in up to `AT_ONCE` daemon threads; return their results in order.

    The result is None if a function has not ended at `until`, monotonic seconds; it goes on, or is
    still begun, in its thread. If functions raise, the first exception is raised after the wait.
    """
    answers: list[Answer | None] = [None] * len(questions)
    raised: list[BaseException] = []
    waiting = iter(enumerate(questions))
    taking = threading.Lock()
    answered = threading.Semaphore(0)

    def ask() -> None:
        while True:
            with taking:
                place, question = next(waiting, (-1, None))
            if question is None:
                return
            try:
                answers[place] = question()
            except BaseException as error:  # noqa: BLE001 - raised again by who waits
                raised.append(error)
            answered.release()

    for _ in range(min(AT_ONCE, len(questions))):
        # not a pool's threads: a pool would wait for them when the process ends
        threading.Thread(target=ask, name="question", daemon=True).start()
    for _ in questions:
        if not answered.acquire(timeout=max(0.0, until - time.monotonic())):
            break
    if raised:
        raise raised[0]
    # later results are not used
    return list(answers)
