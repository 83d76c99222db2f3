"""Addresses of hosts: looked up in threads of their own, kept for a while, bounded."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from osbench.worker.http.wire.wire_errors import CannotConnect, ConnectTimedOut

#: Seconds for which addresses are kept, as in libcurl.
KEPT_S = 60.0

#: Hosts whose addresses are kept, at most.
HOSTS = 256

#: An address family, and what a socket of it connects to.
Address = tuple[int, tuple[str, int] | tuple[str, int, int, int]]


class NameLookups:
    """The addresses of hosts for all threads of a process.

    A resolver that does not answer holds one thread a host, whoever asks for it: none of those
    that wait, and nothing else.
    """

    def __init__(self, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self._kept: dict[tuple[str, int], tuple[float, list[Address]]] = {}
        self._pending: dict[tuple[str, int], Future[list[Address]]] = {}
        self._lock = threading.Lock()

    def addresses(self, host: str, port: int, within_s: float | None) -> list[Address]:
        """The addresses of a host, families by turns.

        Raises CannotConnect, and ConnectTimedOut where it takes longer than `within_s` seconds.
        """
        found = self.kept(host, port)
        if found is not None:
            return found
        try:
            return self.look_up(host, port).result(within_s)
        except FutureTimeout:
            raise ConnectTimedOut(f"name lookup of {host} timed out") from None

    def kept(self, host: str, port: int) -> list[Address] | None:
        """The addresses of a host where they are known."""
        key = (host, port)
        kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        literal = _literal(host, port)
        if literal is None:
            return None
        self._keep(key, [literal])
        return [literal]

    def look_up(self, host: str, port: int) -> Future[list[Address]]:
        """Have a thread look a host up, or wait for the one that does so already.

        The future raises CannotConnect.
        """
        key = (host, port)
        with self._lock:
            pending = self._pending.get(key)
            if pending is None:
                pending = self._pending[key] = Future()
                threading.Thread(
                    target=self._look_up, args=(key, pending), daemon=True, name="name-lookup"
                ).start()
        return pending

    def prefer(self, host: str, port: int, address: Address) -> None:
        """Have the address that was reached tried first from now on."""
        kept = self._kept.get((host, port))
        if kept is not None and kept[1][0] != address:
            others = [one for one in kept[1] if one != address]
            self._kept[(host, port)] = (kept[0], [address, *others])

    def _keep(self, key: tuple[str, int], found: list[Address]) -> None:
        with self._lock:
            self._kept.pop(key, None)
            while len(self._kept) >= HOSTS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = (time.monotonic() + self._kept_s, found)

    def _look_up(self, key: tuple[str, int], pending: Future[list[Address]]) -> None:
        host, port = key
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = _by_turns([(family, at) for family, *_, at in found])  # type: ignore[misc]
            self._keep(key, addresses)
        except (OSError, UnicodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "not a host name"
            outcome: list[Address] | CannotConnect = CannotConnect(f"cannot look up {host}: {said}")
        else:
            outcome = addresses
        with self._lock:
            self._pending.pop(key, None)
        if isinstance(outcome, CannotConnect):
            pending.set_exception(outcome)
        else:
            pending.set_result(outcome)


def _literal(host: str, port: int) -> Address | None:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return None
    if version == 4:
        return socket.AF_INET, (host, port)
    return (socket.AF_INET6, (host, port, 0, 0)) if "%" not in host else None


def _by_turns(found: list[Address]) -> list[Address]:
    """The order of the resolver, but families by turns: one may not be routed."""
    first = [one for one in found if one[0] == found[0][0]]
    second = [one for one in found if one[0] != found[0][0]]
    mixed = [one for pair in zip(first, second, strict=False) for one in pair]
    return mixed + first[len(second) :] + second[len(first) :]
