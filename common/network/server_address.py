"""Parses addresses of servers, and refuses any address that two readers would read differently.

Redis, broker, trace stores, archives, Prometheus, Keystone, proxies and receivers of reports are
addressed by URLs that several libraries read. Where these differ, a part of a password is looked up
as a host, or a client talks to another server than the checked one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

#: Characters that readers strip, take for a slash, or encode in different ways.
_FORBIDDEN = re.compile(r"[^!-\[\]-~]")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?")
#: A host whose last label is a number is an IPv4 address (WHATWG URL, 3.5), in forms that readers
#: disagree on unless it has four decimal parts.
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")

REDIS = ("redis", "rediss")
HTTP = ("http", "https")
AMQP = ("amqp", "amqps", "pyamqp")
UNIX = ("unix", "redis+socket")
#: Parameters of an address of Redis that both redis-py and kombu take, or that osbench reads.
_TLS = frozenset(
    {
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_keyfile",
        "ssl_password",
    }
)
_UNIX = frozenset({"db", "virtual_host", "username", "password"})


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """The parts of an address; user and password are decoded, the rest is as written."""

    scheme: str
    user: str = ""
    password: str = ""
    #: IPv6 addresses without brackets.
    host: str = ""
    port: int | None = None
    path: str = ""
    query: str = ""


def parse_server_address(text: str, schemes: Collection[str]) -> ServerAddress:
    """Return the parts of an address with a scheme of `schemes`, which are in lower case.

    Raises ValueError with a reason that repeats nothing of the address, since any part of a
    malformed one may be of a password.
    """
    if _FORBIDDEN.search(text):
        raise ValueError(
            "has a blank, a control character, a backslash or a letter beyond ASCII: write it as "
            "%XX"
        )
    scheme, mark, rest = text.partition("://")
    if not mark or scheme not in schemes:
        wanted = ", ".join(f"{one}://" for one in schemes)
        raise ValueError(f"must begin with {'one of ' if len(schemes) > 1 else ''}{wanted}")
    if _BAD_PERCENT.search(rest):
        raise ValueError("has a % without two hexadecimal digits after it: write it as %25")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if rest.count("@") > authority.count("@") or authority.count("@") > 1:
        raise ValueError(
            "has an @ that does not end user and password; write special characters of these as "
            "%XX, @ as %40 and / as %2F"
        )
    if "#" in rest:
        raise ValueError("has a # that begins a fragment: write it as %23")
    user, password, place = _authority(authority)
    path, _, query = rest[len(authority) :].partition("?")
    if scheme in UNIX:
        _check_unix(place, path)
        host, port = "", None
    else:
        host, port = _host_and_port(place)
    found = ServerAddress(
        scheme=scheme, user=user, password=password, host=host, port=port, path=path, query=query
    )
    _check_rest(found)
    return found


def server_address_fault(text: str, schemes: Collection[str]) -> str:
    """Return the reason why `parse_server_address` refuses an address; "" if it does not."""
    try:
        parse_server_address(text, schemes)
    except ValueError as error:
        return str(error)
    return ""


def _authority(authority: str) -> tuple[str, str, str]:
    """Split an authority into user and password, decoded, and the rest. Raises ValueError."""
    named, at, place = authority.rpartition("@")
    user, _, password = named.partition(":") if at else ("", "", "")
    if re.search(r"[\[\]]", named):
        raise ValueError("has a bracket in user or password; write it as %5B or %5D")
    return unquote(user), unquote(password), place


def _host_and_port(place: str) -> tuple[str, int | None]:
    if place.startswith("["):
        inner, closing, port = place[1:].partition("]")
        if not closing or (port and not port.startswith(":")):
            raise ValueError("has an IPv6 address without brackets around it")
        _check_ipv6(inner)
        host = inner
        has_port, port = bool(port), port[1:]
    else:
        host, colon, port = place.partition(":")
        has_port = bool(colon)
        if ":" in port:
            raise ValueError(
                "has several colons in its host: write an IPv6 address in brackets, and a user "
                "before an @"
            )
        _check_host(host)
    if not has_port:
        return host, None
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError("has a port that is not a number from 1 to 65535")
    return host, int(port)


def _check_host(host: str) -> None:
    if not host:
        raise ValueError("has no host")
    if not _HOST.fullmatch(host) or ".." in host:
        raise ValueError("has a host with a character that no host name has")
    if _NUMERIC.fullmatch(host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise ValueError(
                "has a host of numbers that is not an IPv4 address of four decimal parts"
            ) from None


def _check_ipv6(inner: str) -> None:
    address, _, zone = inner.partition("%25" if "%25" in inner else "%")
    try:
        ipaddress.IPv6Address(address)
        if re.search(r"[^A-Za-z0-9._-]", zone):
            raise ValueError
    except ValueError:
        raise ValueError("has brackets without an IPv6 address in them") from None


def _check_unix(place: str, path: str) -> None:
    if place or not path.strip("/"):
        raise ValueError("must have the path of a socket, with three slashes: unix:///PATH")


def _check_rest(found: ServerAddress) -> None:
    names = [name for name, _ in parse_qsl(found.query, keep_blank_values=True)]
    if len(names) != len(set(names)):
        raise ValueError("has a parameter twice after its ?")
    if found.scheme in REDIS:
        if not re.fullmatch("(?:/[0-9]{0,9})?", found.path):
            raise ValueError("must end with the number of a database, such as /0, or with the host")
        _check_names(names, _TLS)
    elif found.scheme in UNIX:
        _check_names(names, _UNIX)
    elif found.scheme in AMQP:
        if found.path not in ("", "/", "//") and "/" in found.path[1:]:
            raise ValueError("has a / in its virtual host: write it as %2F")
        _check_names(names, _TLS)


def _check_names(names: Collection[str], known: Collection[str]) -> None:
    if any(name not in known for name in names):
        raise ValueError(f"has an unknown parameter after its ?; use {', '.join(sorted(known))}")
