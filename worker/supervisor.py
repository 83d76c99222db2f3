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

#: A process that ends sooner than this after its start is not started again.
SHORTEST_LIFE_S = 5.0


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
        count = self._conf.worker.processes or os.cpu_count() or 1
        for _ in range(count):
            self._start(lifeline)
        failed = 0
        while not self._leave.wait(0.2):
            for child in [child for child in self._children if child.poll() is not None]:
                born = self._children.pop(child)
                if time.monotonic() - born < SHORTEST_LIFE_S:
                    failed = failed or child.returncode or 1
                    continue
                LOG.warning(
                    "worker process %d ended (%d), a new one starts", child.pid, child.returncode
                )
                self._start(lifeline)
            if not self._children:
                return failed
        return self._stop()

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
