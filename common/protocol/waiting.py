"""Waits for servers that are not there yet, since programs start in any order."""

from __future__ import annotations

from collections.abc import Callable

from osbench.common.errors import StoreMissing
from osbench.common.ports import clock as time

#: Between two looks, and between two messages that say so, seconds.
LOOK_S = 0.5
TELL_S = 30.0


def wait_until_there(
    look: Callable[[], None],
    tell: Callable[[str], None],
    wait_s: float | None = None,
    patient: Callable[[], bool] = lambda: True,
) -> None:
    """Call `look` every LOOK_S seconds until it returns without raising StoreMissing.

    `tell` gets a message at first and every TELL_S seconds. After `wait_s` seconds (None: no limit)
    StoreMissing is raised; other exceptions of `look` at once. Raises KeyboardInterrupt if
    `patient`, called after each StoreMissing, returns False.
    """
    begun = time.monotonic()
    told = begun - TELL_S
    while True:
        try:
            look()
        except StoreMissing as error:
            now = time.monotonic()
            if not patient():
                raise KeyboardInterrupt from None
            if wait_s is not None and now - begun >= wait_s:
                raise
            if now - told >= TELL_S:
                told = now
                bound = "" if wait_s is None else f", for {wait_s:g} s at most"
                tell(f"{error} Waiting for it{bound}; Ctrl-C ends this")
            time.sleep(LOOK_S)
        else:
            return
