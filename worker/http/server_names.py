"""Names of the servers that respond, by which reports count requests."""

from __future__ import annotations

import contextlib
import socket

from osbench.common.plugin.atomic import Names
from osbench.common.protocol.exchanges import OTHER_SERVERS
from osbench.worker.http.wire.raw_response import RawResponse

#: Key of a workload's context: the task's key `http`.
HTTP_KEY = "http_wish"
ADDRESS = "address"
#: Most names in one process; more would take the numbers of actions.
MOST = 200


def peer_of(sock: socket.socket) -> str:
    """Return the address of the server, IP:PORT; "(unknown)" once it has ended the connection."""
    with contextlib.suppress(OSError):
        host, port, *_ = sock.getpeername()
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return "(unknown)"


class ServerNames:
    """Finds the name of the server that responded, and its number among the names of actions."""

    def __init__(self, by: str) -> None:
        """`by`: "address", or the name of a header."""
        self._header = "" if by == ADDRESS else by.lower()
        #: Names of the workload's actions; set before its first request.
        self.names: Names | None = None
        self._numbers: dict[str, int] = {}

    def number(self, peer: str, response: RawResponse) -> int:
        """Return the number of the server with the address `peer`, from 1; 0 without `names`."""
        if self.names is None:
            return 0
        name = peer
        if self._header:
            name = ", ".join(response.values(self._header))
            # names in parentheses are osbench's
            name = repr(name) if name[:1] == "(" else name or f"(no {self._header})"
        found = self._numbers.get(name)
        if found is None and len(self._numbers) < MOST:
            found = self._numbers[name] = self.names.number(name) + 1
        return found or self.names.number(OTHER_SERVERS) + 1
