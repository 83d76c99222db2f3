"""Addresses of hosts: looked up in separate threads, cached for a minute, taken in turn."""

from __future__ import annotations

import ipaddress
import logging
import random
import socket
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from osbench.worker.http.wire.wire_errors import CannotConnect, ConnectTimedOut

LOG = logging.getLogger(__name__)

#: Seconds for which addresses are kept, as in libcurl.
KEPT_S = 60.0

#: Hosts whose addresses are kept, at most.
HOSTS = 256

#: Ends messages on a lookup that failed.
LOOK_THERE = "; check the name, and the name servers of the worker's host"
#: An address family, and what a socket of it connects to.
Address = tuple[int, tuple[str, int] | tuple[str, int, int, int]]


class NameLookups:
    """Looks up addresses of hosts for all threads of a process; caches them for `kept_s` seconds.

    A resolver that hangs blocks one thread per host, and no other lookup. Successive connections to
    a host begin with its addresses in turn, so that several servers behind one name, such as a
    headless service, share the load.
    """

    def __init__(self, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self._kept: dict[tuple[str, int], tuple[float, list[Address]]] = {}
        self._pending: dict[tuple[str, int], Future[list[Address]]] = {}
        #: Connections to a host so far; begins anywhere, so that processes do not all begin alike.
        self._turns: dict[tuple[str, int], int] = {}
        #: Addresses that took no connection when they were tried last.
        self._refused: dict[tuple[str, int], set[Address]] = {}
        self._lock = threading.Lock()

    def addresses(self, host: str, port: int, within_s: float | None) -> list[Address]:
        """Return the addresses of a host in the order to try them; waits for a lookup if needed.

        Raises CannotConnect if the lookup fails, and ConnectTimedOut if it takes longer than
        `within_s` seconds (None: no limit).
        """
        found = self.kept(host, port)
        if found is not None:
            return found
        try:
            return self.in_turn(host, port, self.look_up(host, port).result(within_s))
        except FutureTimeout:
            raise ConnectTimedOut(f"name lookup of {host} timed out{LOOK_THERE}") from None

    def kept(self, host: str, port: int) -> list[Address] | None:
        """Return the addresses of a host in the order to try them; None if a lookup is needed.

        Cached hosts and IP addresses without a zone need no lookup; the latter are cached here.
        """
        key = (host, port)
        kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            return self.in_turn(host, port, kept[1])
        literal = _literal(host, port)
        if literal is None:
            return None
        self._keep(key, [literal])
        return [literal]

    def look_up(self, host: str, port: int) -> Future[list[Address]]:
        """Return the future of a lookup of a host, begun in a new thread unless one is under way.

        Its result is the list of addresses as resolved; it raises CannotConnect if the lookup
        fails. Raises CannotConnect if no thread can be started.
        """
        key = (host, port)
        with self._lock:
            pending = self._pending.get(key)
            if pending is None:
                pending = Future()
                try:
                    threading.Thread(
                        target=self._look_up, args=(key, pending), daemon=True, name="name-lookup"
                    ).start()
                except RuntimeError as error:
                    raise CannotConnect(f"cannot begin to look up {host}: {error}") from None
                # the thread takes the lock before it removes it
                self._pending[key] = pending
        return pending

    def in_turn(self, host: str, port: int, found: list[Address]) -> list[Address]:
        """Return `found`, the addresses of a host, in the order for a new connection.

        Each call begins with the next address; the first begins with a random one. IPv4 and IPv6
        alternate. Addresses that refused a connection come last, until they take one or the host is
        looked up again. A single address is returned as it is.
        """
        if len(found) == 1:
            return found
        key = (host, port)
        with self._lock:
            turn = self._turns.get(key)
            if turn is None:
                turn = random.randrange(len(found))  # noqa: S311 - load, not secrets
            self._turns[key] = turn + 1
            refused = self._refused.get(key, set())
            healthy = [one for one in found if one not in refused]
            last = [one for one in found if one in refused]
        return _by_turns(healthy, turn) + _by_turns(last, turn)

    def refused(self, host: str, port: int, address: Address, why: str) -> None:
        """Note that an address refused a connection: `in_turn` puts it behind the host's others.

        Logs `why` the first time. Does nothing for a host with one address or without cached ones.
        """
        kept = self._kept.get((host, port))
        if kept is None or len(kept[1]) == 1:
            return
        with self._lock:
            refused = self._refused.setdefault((host, port), set())
            known = address in refused
            refused.add(address)
        if not known:
            alike = sum(one[0] == address[0] for one in kept[1])
            # a service that listens on one family alone is nothing to warn of
            level = logging.WARNING if alike > 1 else logging.INFO
            said = "%s of %s takes no connection (%s): its other addresses are tried first"
            LOG.log(level, said, address[1][0], host, why)

    def took(self, host: str, port: int, address: Address) -> None:
        """Note that an address took a connection: `in_turn` no longer puts it behind the others."""
        refused = self._refused.get((host, port))
        if refused:
            with self._lock:
                refused.discard(address)

    def _keep(self, key: tuple[str, int], found: list[Address]) -> None:
        with self._lock:
            self._kept.pop(key, None)
            self._refused.pop(key, None)
            while len(self._kept) >= HOSTS:
                oldest = next(iter(self._kept))
                for known in (self._kept, self._refused, self._turns):
                    known.pop(oldest, None)
            self._kept[key] = (time.monotonic() + self._kept_s, found)

    def _look_up(self, key: tuple[str, int], pending: Future[list[Address]]) -> None:
        host, port = key
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses: list[Address] = [(family, at) for family, *_, at in found]  # type: ignore[misc]
            self._keep(key, addresses)
        except (OSError, UnicodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "not a host name"
            wrong = f"cannot look up {host}: {said}{LOOK_THERE}"
            outcome: list[Address] | CannotConnect = CannotConnect(wrong)
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


def _by_turns(found: list[Address], turn: int) -> list[Address]:
    """Return a copy of `found`, rotated by `turn` within IPv4 and IPv6, which then alternate.

    The resolver's first family comes first: the resolver knows which family is the better one.
    Left-over addresses of the larger family come last.
    """
    if not found:
        return []
    first = _turned_addresses([one for one in found if one[0] == found[0][0]], turn)
    second = _turned_addresses([one for one in found if one[0] != found[0][0]], turn)
    mixed = [one for pair in zip(first, second, strict=False) for one in pair]
    return mixed + first[len(second) :] + second[len(first) :]


def _turned_addresses(family: list[Address], turn: int) -> list[Address]:
    at = turn % len(family) if family else 0
    return family[at:] + family[:at]
