"""The address on which the web server listens."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass

from osbench.common.errors import UsageError
from osbench.common.network.listen_address import LOOPBACK, parse_listen_address

#: Default port; another port if this one is taken.
PORT = 8089


@dataclass(frozen=True, kw_only=True)
class Address:
    """Host and port on which a server listens; port 0 is any free port."""

    host: str = LOOPBACK
    port: int = PORT
    #: The port was asked for: no other one will do.
    fixed: bool = False

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse "ADDR:PORT", ":PORT" or "PORT" as an address whose port is `fixed`.

        "" is the default address, whose port may change if it is taken. Raises UsageError for other
        text.
        """
        if not text:
            return cls()
        host, port = parse_listen_address(text)
        return cls(host=host, port=port, fixed=True)

    @property
    def loopback(self) -> bool:
        """Return whether only programs on this host can reach the address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def bind(self) -> socket.socket:
        """Return a socket that listens on the address; the caller closes it.

        If that fails and the port is not `fixed`, any free port is tried. Raises UsageError if it
        cannot listen.
        """
        ports = [self.port] if self.fixed else [self.port, 0]
        for port in ports:
            try:
                family, kind, protocol, _, place = socket.getaddrinfo(
                    self.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
                )[0]
                return _listening(family, kind, protocol, place)
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", "not a host name") or str(error)
                if port != ports[-1]:
                    continue
                shown = f"[{self.host}]" if ":" in self.host else self.host
                taken = getattr(error, "errno", None) == errno.EADDRINUSE
                raise UsageError(
                    f"cannot listen on {shown}:{port}: {reason}; give another address or port"
                    f"{', or end the process that listens there' if taken else ''}"
                ) from None
        raise AssertionError("there is a last port")

    def names(self) -> frozenset[str]:
        """Return the host names that a request's Host header may have, IPv6 in brackets, no port.

        The server refuses others: a foreign page could resolve its name to our address (DNS
        rebinding). They are the names of loopback and `host`. If the server listens on all
        interfaces, all names and addresses of this host are included.
        """
        if self.loopback:
            return frozenset({"localhost", "127.0.0.1", "[::1]", _bracketed_host(self.host)})
        found = {"localhost", "127.0.0.1", "[::1]", self.host.lower()}
        if self.host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            found |= {socket.gethostname().lower(), socket.getfqdn().lower()}
            # seldom needed, and every command that can show a page would import it
            import psutil  # noqa: PLC0415 - see above

            for addresses in psutil.net_if_addrs().values():
                found |= {
                    _bracketed_host(one.address.partition("%")[0])
                    for one in addresses
                    if one.family in (socket.AF_INET, socket.AF_INET6)
                }
        return frozenset(_bracketed_host(name) for name in found)


def _bracketed_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _listening(family: int, kind: int, protocol: int, place: object) -> socket.socket:
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(place)  # type: ignore[arg-type]
        found.listen(128)
    except OSError:
        found.close()
        raise
    return found
