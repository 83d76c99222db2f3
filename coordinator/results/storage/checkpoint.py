"""Checkpoints of a run: writes its results so far to the file `timeline`, for live views."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.common.ports import clock as time
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_timeline

LOG = logging.getLogger(__name__)

#: Least time between two checkpoints, seconds.
INTERVAL_S = 1.0
#: A checkpoint may take this share of the coordinator's time at most.
SHARE = 0.03


class Checkpoints:
    """Writes the timeline of a run (results so far) to its directory while the run goes on.

    A write that fails is logged once and does not disturb the run.
    """

    def __init__(self, directory: RunDirectory, build: Callable[[], dict[str, Any]]) -> None:
        """`build` returns the timeline so far; it is called once for each checkpoint.

        It may raise anything: that counts as a failed write.
        """
        self._directory = directory
        self._build = build
        self._next = 0.0
        self._failed = False
        #: The first one includes imports, so that its cost says nothing of later ones.
        self._first = True

    def perhaps(self) -> None:
        """Write a checkpoint if at least `INTERVAL_S` seconds have passed since the last one.

        More seconds are left if checkpoints are slow: they take at most the fraction `SHARE` of the
        time. Called after each pass of the load's loop. The first error is logged, none is raised.
        """
        begun = time.monotonic()
        if begun < self._next:
            return
        try:
            document = {"complete": False, **self._build()}
            write_timeline(self._directory, document, sync=False)
        except (OSError, OsbenchError) as error:
            if not self._failed:
                LOG.warning("no live view: a checkpoint could not be written: %s", error)
            self._failed = True
        except Exception:  # a plug-in's SLA may raise
            if not self._failed:
                LOG.warning("no live view: a checkpoint could not be written", exc_info=True)
            self._failed = True
        ended = time.monotonic()
        took_s, self._first = 0.0 if self._first else ended - begun, False
        self._next = ended + max(INTERVAL_S, took_s / SHARE)
