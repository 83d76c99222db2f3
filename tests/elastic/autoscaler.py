"""A stand-in for KEDA: starts and ends supervisors of one worker by `osbench_worker_busy`."""

from __future__ import annotations

import math
import signal
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field

from helpers.runs import Started
from servers.child import free_port

METRIC = "osbench_worker_busy"
#: Virtual users in use for which there is a worker, and most workers.
THRESHOLD = 7
MOST = 4
#: Between two looks, and for how long fewer workers must suffice before one ends, seconds.
LOOK_S = 2.0
STABLE_S = 12.0


@dataclass
class ScaledWorker:
    """A worker that was started, and when; times are monotonic."""

    supervisor: Started
    port: int
    started_at: float
    ended_at: float = math.inf

    def busy(self) -> float:
        """Its virtual users with an iteration, by its metrics; 0 before it serves any."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
                lines = page.read().decode().splitlines()
        except OSError:
            return 0.0
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(METRIC))


@dataclass
class Autoscaler:
    """Keeps as many workers as the metric asks for, as a HorizontalPodAutoscaler does."""

    #: Starts a supervisor that serves its metrics at a port.
    start: Callable[[int], Started]
    workers: list[ScaledWorker] = field(default_factory=list)
    _looked_at: float = 0.0
    _enough_since: float = math.inf

    @property
    def live(self) -> list[ScaledWorker]:
        """Workers that were not told to end."""
        return [one for one in self.workers if one.ended_at == math.inf]

    def look(self) -> None:
        """Start one worker more, or end the newest, if the metric asks for that."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        busy = sum(one.busy() for one in self.live)
        wanted = min(MOST, max(1, math.ceil(busy / THRESHOLD)))
        if wanted >= len(self.live):
            self._enough_since = math.inf
            for _ in range(wanted - len(self.live)):
                self.add()
        elif self._enough_since == math.inf:
            self._enough_since = now
        elif now - self._enough_since > STABLE_S:
            self._enough_since = math.inf
            last = self.live[-1]
            last.ended_at = now
            last.supervisor.process.send_signal(signal.SIGTERM)

    def add(self) -> None:
        """Start a worker."""
        port = free_port()
        self.workers.append(ScaledWorker(self.start(port), port, time.monotonic()))
