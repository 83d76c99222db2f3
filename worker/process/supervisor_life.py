"""Reports to health checks and the service manager of the host that a supervisor goes on.

The protocol of the service manager is that of sd_notify(3): a datagram to the socket that
NOTIFY_SOCKET names.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

from oslo_config import cfg

from osbench.worker.process.health_check import complaints, supervisor_record

#: How often they hear of a supervisor, seconds.
TELL_S = 1.0


class SupervisorLife:
    """Signs of life of a supervisor: its life record, and the watchdog of its systemd service."""

    def __init__(self, conf: cfg.ConfigOpts, processes: int) -> None:
        """Create the record; `processes`: number of workers. Removes NOTIFY_SOCKET from environ.

        Raises ConfigError if the data directory cannot be written.
        """
        self._conf = conf
        #: The record that health checks read.
        self.record = supervisor_record(conf, os.getpid(), processes)
        # processes that this one starts must not speak for it
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        self._told = float("-inf")

    def tell(self, state: str) -> None:
        """Record the state, and feed the service's watchdog unless a process of this host hangs.

        To be called often: it does so at most once a second.
        """
        now = time.monotonic()
        if now - self._told < TELL_S:
            return
        self._told = now
        self.record.tell(state)
        # the manager has one watchdog for all processes of the service
        if self._address and not complaints(self._conf):
            self._feed()

    @property
    def has_manager(self) -> bool:
        """Return whether a service manager waits for signs of life."""
        return bool(self._address)

    def close(self) -> None:
        """Remove the record of this supervisor from the data directory."""
        self.record.close()

    def _feed(self) -> None:
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as sender:
            sender.sendto(b"WATCHDOG=1", self._address)
