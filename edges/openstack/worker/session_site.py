"""Settings that all requests of a session to one host share: TLS, adapter, size limit."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from keystoneauth1.session import TCPKeepAliveAdapter
from requests.adapters import HTTPAdapter
from requests.models import PreparedRequest
from requests.utils import (
    DEFAULT_CA_BUNDLE_PATH,
    get_environ_proxies,
    select_proxy,
)

from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.edges.openstack.common.thread_sessions import KeepAliveAdapter
from osbench.worker.http.tls_contexts import Trust

#: Seconds for which the environment (proxies, .netrc, CA bundle) is taken as it was.
LOOKED_AT_S = 1.0

#: URLs that requests would send as they are; one with "/." or "%" may be rewritten.
_ORDINARY = re.compile(
    r"(https?://[a-z0-9.-]+(?::[0-9]+)?)"
    r"(/[A-Za-z0-9_~!$&'()*+,;=:@./-]*(?:\?[A-Za-z0-9_~!$&'()*+,;=:@/?.-]+)?)"
)

_OUR_ADAPTERS = (HTTPAdapter, TCPKeepAliveAdapter, KeepAliveAdapter)
_PORTS = {"http": 80, "https": 443}


class SentUrl(NamedTuple):
    """A URL as `requests` sends it, with its parts."""

    url: str
    #: Scheme, host and port.
    place: str
    #: Path and query.
    target: str


@lru_cache(1024)
def sent_url(url: str) -> SentUrl:
    """Return a URL as `requests` sends it, quoted, with its parts; cached.

    Raises ValueError for a URL that is malformed or not HTTP.
    """
    ordinary = _ORDINARY.fullmatch(url)
    if ordinary is not None and "/." not in url:
        return SentUrl(url, ordinary[1], ordinary[2])
    prepared = PreparedRequest()
    prepared.prepare_url(url, None)
    sent = str(prepared.url)
    parts = urlsplit(sent)
    if parts.scheme not in _PORTS:
        raise ValueError(f"expected http or https in an endpoint's address, got {parts.scheme!r}")
    return SentUrl(sent, f"{parts.scheme}://{parts.netloc}", prepared.path_url)


class SessionSite:
    """The settings of a session for one origin (scheme, host and port); never changed."""

    __slots__ = (
        "adapter",
        "bound",
        "host",
        "named",
        "origin",
        "place",
        "port",
        "secure",
        "trust",
    )

    def __init__(self, place: str, trust: Trust, adapter: Any) -> None:
        parts = urlsplit(place)
        #: Scheme, host and port.
        self.place = place
        self.host = parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        self.secure = parts.scheme == "https"
        self.trust = trust
        #: As in WireRequest.
        self.origin = (self.host, self.port, trust if self.secure else None, self.secure)
        host = f"[{self.host}]" if ":" in self.host else self.host
        #: The value of the header `Host`.
        self.named = host if self.port == _PORTS[parts.scheme] else f"{host}:{self.port}"
        #: The session's adapter for the host, which sends what our client does not.
        self.adapter = adapter
        #: The most that the adapter takes of a response.
        self.bound: ResponseBound = getattr(adapter, "bound", UNBOUNDED)


def found_site(
    session: requests.Session, place: str, adapter: Any, verify: Any, cert: Any
) -> SessionSite | str:
    """Return the settings of a session for an origin, or why only `requests` can send there.

    `place`: scheme, host and port. `verify` and `cert` are the request's; None takes the session's.
    Reads the environment and .netrc if the session's `trust_env` is set, as `requests` does.
    """
    parts = urlsplit(place)
    if "@" in parts.netloc:
        return "a user in the URL"
    if not _is_ordinary(adapter):
        return "its own adapter"
    if session.trust_env:
        if select_proxy(place, get_environ_proxies(place, no_proxy=None)):
            return "a proxy of the environment"
        if requests.sessions.get_netrc_auth(place):
            return "a user in .netrc"
        # whatever the session says, as in requests
        if verify is True or verify is None:
            environ = os.environ
            verify = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or verify
    if verify is None:
        verify = session.verify
    trust = _trust(verify, cert if cert is not None else session.cert)
    # requests says what is wrong with them
    return SessionSite(place, trust, adapter) if trust else "its verify or cert"


def _is_ordinary(adapter: Any) -> bool:
    """Return whether an adapter is of a known class, without retries or TLS settings."""
    return (
        type(adapter) in _OUR_ADAPTERS
        and adapter.max_retries.total == 0
        and not getattr(adapter, "tls_ciphers", None)
        and not getattr(adapter, "tls_min_version", None)
    )


def _trust(verify: Any, cert: Any) -> Trust | None:
    """Return the TLS settings for `verify` and `cert`; None if invalid, or if a file is missing."""
    bundle = DEFAULT_CA_BUNDLE_PATH if verify is True else verify or None
    files = [cert] if isinstance(cert, str) and cert else list(cert or ())
    if not all(isinstance(one, str) and Path(one).exists() for one in (bundle or "/", *files)):
        return None
    if len(files) > 2:
        return None
    return Trust(bundle, (files[0] if len(files) == 1 else (files[0], files[1])) if files else None)
