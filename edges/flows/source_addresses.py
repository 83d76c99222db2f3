"""Local addresses from which connections go, in turn."""

from __future__ import annotations

import errno
import ipaddress
import itertools
import random
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from osbench.common.errors import FleetError
from osbench.worker.http.exchange_steps import Connect, Step, Steps

#: Addresses of all networks of a task at most.
MOST = 4096
#: Of ip(7): the port is chosen when the socket connects, so that connections to different targets
#: may share it.
IP_BIND_ADDRESS_NO_PORT = 24

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Errors of connecting if no route leads from an address to the target, as from 127.0.0.1.
_NO_WAY = (errno.EINVAL, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM)
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


def source_texts(wish: str | Sequence[str]) -> list[str]:
    """Return the texts of `source`, a key of the task's `http`: one, or a list."""
    return [wish] if isinstance(wish, str) else list(wish)


def addresses_of(texts: Sequence[str]) -> list[Address]:
    """Return the addresses that texts name, in order, without repeats: addresses and networks.

    Raises ValueError for a text that is neither, an address that no socket has, and for more than
    MOST addresses.
    """
    found: dict[Address, None] = {}
    for text in texts:
        try:
            network = ipaddress.ip_network(text.strip())
        except ValueError:
            raise ValueError(_not_an_address(text)) from None
        if network.num_addresses > MOST:
            raise ValueError(f"{text!r} has more than {MOST:,} addresses: name smaller networks")
        for address in network.hosts():
            if address.is_unspecified or address.is_multicast:
                raise ValueError(f"{text!r} is not the address of a host")
            found[address] = None
    if len(found) > MOST:
        raise ValueError(f"more than {MOST:,} addresses: name smaller networks")
    return list(found)


def _not_an_address(text: str) -> str:
    try:
        wide = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return (
            f"{text!r} is neither an address, such as 10.0.0.5, nor a network, such as"
            " 10.0.0.0/28; names of hosts and interfaces are not looked up"
        )
    return f"{text!r} has bits after its prefix: write {wide} for the network"


class SourceAddresses:
    """The addresses of a task that this host has, which new connections take in turn. Thread-safe.

    Connections take the addresses of the family of their target, IPv4 or IPv6.
    """

    def __init__(self, wish: str | Sequence[str]) -> None:
        """Find out which addresses of `wish` this host has, by binding sockets.

        `wish` was checked. Raises FleetError if this host has none of them.
        """
        texts = source_texts(wish)
        here = [one for one in addresses_of(texts) if is_local(one)]
        if not here:
            raise FleetError(
                f"{socket.gethostname()} has no address of http: {{source: [{', '.join(texts)}]}}:"
                " name addresses of the workers' hosts (ip address show), or add them there (ip"
                " address add); each host uses its own ones"
            )
        # processes of a host do not begin alike
        random.shuffle(here)
        self._every = itertools.cycle([str(one) for one in here])
        self._turns: dict[int, Iterator[str]] = {}
        for version, family in _FAMILIES.items():
            own = [str(one) for one in here if one.version == version]
            if own:
                self._turns[family] = itertools.cycle(own)

    def next_of_any(self) -> str:
        """Return the next address, whatever its family: for a client that keeps one per thread."""
        return next(self._every)

    def bound(self, steps: Steps[Any]) -> Steps[Any]:
        """Pass on the steps of opening a connection; each `Connect` binds its socket first."""
        try:
            step: Step = next(steps)
            while True:
                try:
                    if isinstance(step, Connect):
                        step = self._with_source(step)
                    outcome = yield step
                except OSError as error:
                    step = steps.throw(_with_remedy(error, step))
                except BaseException as error:  # noqa: BLE001 - the generator decides
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
        except StopIteration as end:
            return end.value
        finally:
            steps.close()

    def _with_source(self, step: Connect) -> SourcedConnect:
        """Return the step with the next address of its family. Raises OSError if there is none."""
        family = step.address[0]
        turns = self._turns.get(family)
        if turns is None:
            kind = "IPv6" if family == socket.AF_INET6 else "IPv4"
            raise OSError(
                errno.EAFNOSUPPORT,
                f"http: {{source: ...}} has no {kind} address of {socket.gethostname()}: add one",
            )
        found = SourcedConnect(*step)
        # of a cycle of strings: one step, which no other thread comes between
        found.source = next(turns)
        return found


class SourcedConnect(Connect):
    """Step: connect to an address, from the local address `source`."""

    source: str

    def socket(self) -> socket.socket:
        """Return a new TCP socket that is bound to `source`, without a port. Raises OSError."""
        made = super().socket()
        try:
            made.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            made.bind((self.source, 0))
        except OSError:
            made.close()
            raise
        return made


def _with_remedy(error: OSError, step: Step) -> OSError:
    """Return `error`, with a remedy if it is about the source address of the step."""
    if not isinstance(step, SourcedConnect):
        return error
    if error.errno == errno.EADDRNOTAVAIL:
        return OSError(
            error.errno,
            f"{error.strerror}: all ports of {step.source} to this target are in use, or the host"
            " has lost this address; add addresses to http: {source: ...}, or keep connections"
            " longer",
        )
    if error.errno in _NO_WAY:
        return OSError(
            error.errno,
            f"{error.strerror} from the source address {step.source}: name an address with a route"
            " to this target",
        )
    return error


def is_local(address: Address) -> bool:
    """Return whether a socket of this host can have an address. Raises OSError without sockets."""
    try:
        made = socket.socket(_FAMILIES[address.version], socket.SOCK_STREAM)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            return False
        raise
    with made:
        try:
            made.bind((str(address), 0))
        except OSError:
            return False
    return True
