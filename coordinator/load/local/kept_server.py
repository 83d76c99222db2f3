"""Data of a run's private server, kept in the run directory after its coordinator has ended."""

from __future__ import annotations

import logging
import os
import shutil
import time
from pathlib import Path

from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.wire import Wire
from osbench.common.text.escaping import decoded_text
from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.lifeline import CLEAR_S
from osbench.coordinator.results.storage.resumable import PLAN, SERVER, SERVER_LOCK

LOG = logging.getLogger(__name__)

#: Longest wait for the watchdog of the coordinator that is gone, and between two looks, seconds.
_WATCHDOG_S = CLEAR_S + watchdog.DUMP_S
_POLL_S = 0.05
#: Bound of a reply of the server, seconds.
_REPLY_S = 5.0


def keeping_in(directory: Path) -> watchdog.Keeping:
    """Return the paths in a run directory that a watchdog needs to save the server's data."""
    paths = (str(directory / name) for name in (PLAN, SERVER, SERVER_LOCK))
    return watchdog.Keeping(*paths)


def restore(directory: Path, folder: Path) -> bool:
    """Copy the Redis dump saved from a run to `folder`, for the server that starts there next.

    Waits until the earlier coordinator's watchdog has saved it, with a limit. Returns False if
    there is no dump or it cannot be read; the latter is logged.
    """
    keeping = keeping_in(directory)
    try:
        _await_watchdog(keeping)
        shutil.copy(keeping.dump, folder / watchdog.DUMP)
    except FileNotFoundError:
        return False
    except OSError as error:
        LOG.warning("what workers had delivered last cannot be read: %s", error)
        return False
    return True


def forget_workers(url: str) -> None:
    """Delete the heartbeats and queues of earlier workers from Redis: all of them have ended.

    Raises StoreUnreachable, StoreError.
    """
    with connect(url, _REPLY_S) as client:
        wire = Wire(client)
        for name in wire.names():
            wire.forget(decoded_text(name))


def _await_watchdog(keeping: watchdog.Keeping) -> None:
    deadline = time.monotonic() + _WATCHDOG_S
    while (lock := keeping.take_lock()) is None:
        if time.monotonic() > deadline:
            LOG.warning("the watchdog of the earlier coordinator is still cleaning up")
            return
        time.sleep(_POLL_S)
    os.close(lock)
