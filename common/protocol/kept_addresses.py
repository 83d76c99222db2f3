"""Cache of the addresses of Redis, so that a slow name server delays no process.

`socket.getaddrinfo` has no timeout: with a broken search domain each lookup takes several seconds,
and so would each new connection. Only the first connection of a process to a server waits for its
name to be looked up. Later connections use the addresses of the last lookup, the last successful
one first, while the name is looked up again in the background.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass, field
from typing import Any

from redis.connection import Connection, SSLConnection

from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading

#: A name is looked up again when a connection is made this long after the last lookup began, and
#: sooner after a connection that failed, because the server may have moved. Seconds.
AGAIN_S = 30.0
AGAIN_AFTER_FAILURE_S = 2.0


@dataclass
class _NamedServer:
    """A server by host name and port, with cached IP addresses, the last that worked first."""

    host: str
    port: int
    #: Held by the thread that looks the name up.
    looking: threading.Lock = field(default_factory=threading.Lock)
    addresses: list[str] = field(default_factory=list)
    #: Start of the last lookup, monotonic.
    looked: float = float("-inf")
    failed: bool = False

    def look_up(self) -> None:
        """Look up the addresses, without a timeout; known ones stay first. Raises OSError."""
        self.looked = time.monotonic()
        try:
            found = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)
        except UnicodeError:
            # a label that is empty or longer than 63 characters
            raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
        fresh = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        known = [one for one in self.addresses if one in fresh]
        self.addresses = [*known, *(one for one in fresh if one not in known)]

    def look_up_again(self) -> None:
        """Start a lookup of the host name in a background thread, if it is due and none runs.

        One is due AGAIN_S seconds after the last began; already AGAIN_AFTER_FAILURE_S seconds after
        it if the last connection failed. A failed lookup keeps the known addresses.
        """
        age_s = time.monotonic() - self.looked
        if age_s < (AGAIN_AFTER_FAILURE_S if self.failed else AGAIN_S):
            return
        if self.looking.acquire(blocking=False):
            try:
                threading.Thread(target=self._look_up_quietly, name="lookup", daemon=True).start()
            except RuntimeError:
                self.looking.release()

    def _look_up_quietly(self) -> None:
        try:
            # the addresses that are known stay
            with contextlib.suppress(OSError):
                self.look_up()
        finally:
            self.looking.release()

    def note(self, address: str) -> None:
        """Put an address first: a connection to it has just succeeded."""
        self.failed = False
        if self.addresses[:1] != [address]:
            self.addresses = [address, *(one for one in self.addresses if one != address)]


class KeptAddresses:
    """Cache of servers with addresses, by host and port; shared by threads of a process."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], _NamedServer] = {}

    def of(self, host: str, port: int) -> _NamedServer:
        """Return the cached server, with at least one address.

        The first call for a server blocks for a lookup, and raises OSError if that fails. Later
        calls only start a lookup in the background if one is due.
        """
        place = self._places.setdefault((host, port), _NamedServer(host, port))
        if place.addresses:
            place.look_up_again()
            return place
        with place.looking:
            if not place.addresses:
                place.look_up()
        return place


_KEPT = KeptAddresses()


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


class KeptConnection(Connection):
    """A connection of redis-py that tries the cached addresses of its host, one after another.

    If all fail it raises the first error, and a lookup may begin in the background.
    """

    def _connect(self) -> Any:
        name = self.host
        if _is_number(name):
            return super()._connect()  # type: ignore[no-untyped-call]
        place = _KEPT.of(name, self.port)
        problem: OSError | None = None
        for address in place.addresses:
            # redis-py looks up an address as well, which takes no time
            self.host = address
            try:
                connected = super()._connect()  # type: ignore[no-untyped-call]
            except OSError as error:
                problem = problem or error
                continue
            finally:
                self.host = name
            place.note(address)
            return connected
        place.failed = True
        place.look_up_again()
        assert problem is not None, "a lookup that finds no address raises"
        raise problem


class KeptSSLConnection(SSLConnection, KeptConnection):
    """A `KeptConnection` with TLS; the certificate must have the host's name, not its address.

    `SSLConnection._connect` wraps the socket that the next class makes.
    """
