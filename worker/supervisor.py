"""Starts the worker processes of a host and keeps them running."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from oslo_config import cfg

LOG = logging.getLogger(__name__)

#: A process that ends sooner than this after its start has a fault that the next one would have,
#: too. One that was killed is replaced all the same, but not faster than this.
SHORTEST_LIFE_S = 5.0


def process_count(conf: cfg.ConfigOpts) -> int:
    """Worker processes of this host: as many as are configured, else one a core."""
    return int(conf.worker.processes or os.cpu_count() or 1)


class Supervisor:
    """One child a worker process; a child that dies is replaced by a new incarnation."""

    def __init__(
        self, conf: cfg.ConfigOpts, config_files: Sequence[str], plugin_paths: Sequence[str]
    ) -> None:
        self._conf = conf
        self._config_files = config_files
        self._plugin_paths = plugin_paths
        self._leave = threading.Event()
        self._children: dict[subprocess.Popen[bytes], float] = {}
        #: When processes are to be started, monotonic.
        self._due: list[float] = []

    def run(self) -> int:
        """Run until SIGTERM or SIGINT; answers the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._leave.set())
        reading, writing = os.pipe()
        try:
            return self._supervise(reading)
        finally:
            # closing the lifeline drains whoever is left
            os.close(writing)
            os.close(reading)

    def _supervise(self, lifeline: int) -> int:
        self._due = [time.monotonic()] * process_count(self._conf)
        failed = 0
        while True:
            failed = self._bury() or failed
            self._start_due(lifeline)
            if not self._children and not self._due:
                return failed
            if self._leave.wait(0.2):
                return self._stop()

    def _bury(self) -> int:
        """Plan replacements of processes that ended; the exit code of one that gets none, or 0."""
        failed = 0
        for child in [child for child in self._children if child.poll() is not None]:
            born = self._children.pop(child)
            lived_s = time.monotonic() - born
            how = f"worker process {child.pid} ended ({child.returncode}) after {lived_s:.1f} s"
            if child.returncode >= 0 and lived_s < SHORTEST_LIFE_S:
                LOG.warning("%s: no other is started", how)
                failed = failed or child.returncode or 1
            else:
                LOG.warning("%s: a new one starts", how)
                self._due.append(born + SHORTEST_LIFE_S)
        return failed

    def _start_due(self, lifeline: int) -> None:
        now = time.monotonic()
        for _ in [at for at in self._due if at <= now]:
            self._start(lifeline)
        self._due = [at for at in self._due if at > now]

    def _start(self, lifeline: int) -> None:
        worker = self._conf.worker
        command = [sys.executable, "-P", "-m", "osbench.worker.cli", "--lifeline", str(lifeline)]
        for path in self._config_files:
            command += ["--config-file", path]
        for path in self._plugin_paths:
            command += ["--plugin-path", path]
        command += ["--virtual-users", str(worker.virtual_users), "--label", worker.label]
        # own groups: Ctrl-C reaches the supervisor, which drains them in its own order
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdin=subprocess.DEVNULL, pass_fds=(lifeline,), process_group=0
        )
        self._children[child] = time.monotonic()

    def _stop(self) -> int:
        for child in self._children:
            child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self._conf.worker.drain_timeout_s + 5
        for child in self._children:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        return 0
