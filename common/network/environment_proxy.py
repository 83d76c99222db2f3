"""Finds the proxy for a URL in the environment; all clients and messages use this decision."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from requests.utils import get_environ_proxies, select_proxy

from osbench.common.network.server_address import HTTP, parse_server_address

#: libcurl has 1080 where a proxy has no port, requests that of the scheme.
_PORTS = {"http": 80, "https": 443}
_SOCKS = ("socks4", "socks4a", "socks5", "socks5h")


def proxy_of(url: str, given: Mapping[str, str] | None = None) -> str:
    """Return the URL of the proxy for `url`, with scheme and port; "" if it is reached directly.

    As in requests: first `given`, by scheme, then variables such as http_proxy, unless no_proxy has
    the host. Raises ValueError for a proxy that is not a URL.
    """
    found = select_proxy(url, {**get_environ_proxies(url, no_proxy=None), **(given or {})})
    return _whole(found) if found else ""


def shown_proxy(proxy: str) -> str:
    """Return the URL of a proxy for messages, without user, password and path."""
    parts = urlsplit(proxy)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "", "", ""))


def no_connection(proxy: str, why: str) -> str:
    """Return the error message that a proxy accepts no connection; `why`: the reason."""
    return f"cannot connect to the proxy {shown_proxy(proxy)}: {why}"


def _whole(proxy: str) -> str:
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        address = parse_server_address(url, (*HTTP, *_SOCKS))
    except ValueError as error:
        # nothing of it is shown: a part of a password may be in any place
        raise ValueError(
            f"the proxy that the environment names {error}; correct http_proxy, https_proxy or "
            "all_proxy"
        ) from None
    if address.port is None and address.scheme in _PORTS:
        netloc = urlsplit(url).netloc
        return f"{address.scheme}://{netloc}:{_PORTS[address.scheme]}"
    return url
