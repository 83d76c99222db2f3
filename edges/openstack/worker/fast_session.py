"""A session of the library `requests` that sends ordinary requests by osbench's HTTP client."""

from __future__ import annotations

import ssl
import sys
from functools import lru_cache
from http.cookiejar import CookieJar
from time import monotonic, monotonic_ns
from typing import Any

import requests
from keystoneauth1 import session as keystoneauth_session
from requests import exceptions
from requests.adapters import HTTPAdapter
from requests.cookies import extract_cookies_to_jar
from requests.models import PreparedRequest

from osbench.common.network.response_bound import ResponseBound
from osbench.edges.openstack.common.home_session import HomeSession
from osbench.edges.openstack.common.thread_sessions import KeepAliveAdapter
from osbench.edges.openstack.worker.session_client import SessionClient
from osbench.edges.openstack.worker.session_request import (
    DescribedRequest,
    SessionRequest,
    UnusualHeader,
    merged_fields,
)
from osbench.edges.openstack.worker.session_response import SessionResponse
from osbench.edges.openstack.worker.session_site import (
    LOOKED_AT_S,
    SentUrl,
    SessionSite,
    found_site,
    sent_url,
)
from osbench.edges.openstack.worker.short_way import ShortWay
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.outgoing_request import METHODS
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.wire_errors import (
    BadResponse,
    CannotConnect,
    CannotSecure,
    ConnectTimedOut,
    DifferentLengths,
    EarlyEnd,
    ReceiveTimedOut,
    TooLongResponse,
)

#: Arguments of `requests.Session.request`; all others are left to requests if they have a value.
_TAKEN = frozenset({"headers", "data", "timeout", "allow_redirects", "verify", "cert"})

#: Hosts of a session that are remembered, at most.
_SITES = 64

#: Tests of other projects replace them, to make the responses themselves.
_SENDS = (requests.Session.send, HTTPAdapter.send)


class FastSession(HomeSession):
    """A session of `requests` that sends ordinary requests by osbench's faster client.

    The library `requests` sends all others. Responses and errors are of its classes.
    """

    #: None sends everything by requests; so does a session that was pickled.
    short_way: ShortWay | None = None

    def __init__(self, short_way: ShortWay | None = None) -> None:
        super().__init__()
        if short_way is not None:
            self.short_way = short_way
            self._client = SessionClient(short_way.opener)
            self._sites: dict[tuple[Any, ...], tuple[float, SessionSite | str]] = {}

    def _request(self, method: str, url: str, *more: Any, **options: Any) -> requests.Response:
        short_way = self.short_way
        if short_way is None:
            return super()._request(method, url, *more, **options)
        why = "arguments without a name" if more else self._beyond(method, url, options)
        if not why:
            try:
                sent = sent_url(url)
                fields = merged_fields(self.headers, options.get("headers"))
            except ValueError:
                why = "its URL"
            except UnusualHeader:
                why = "its headers"
            else:
                site = self._site(sent, options.get("verify"), options.get("cert"))
                if not isinstance(site, str):
                    request = DescribedRequest(method.upper(), sent.url, fields, None)
                    return self._sent_shortly(request, sent, site, options)
                why = site
        short_way.leave(why)
        return super()._request(method, url, *more, **options)

    def close(self) -> None:
        """Close all idle connections; further requests open new ones."""
        super().close()
        if self.short_way is not None:
            self._client.close()

    def site_of(self, url: str, verify: Any, cert: Any) -> SessionSite | str:
        """Return the settings for the origin of a URL, or why only `requests` can send there.

        `verify` and `cert` are as in `requests`; None takes the session's.
        """
        if self.short_way is None:
            return "openstack_transport"
        try:
            return self._site(sent_url(url), verify, cert)
        except ValueError:
            return "its URL"

    def _beyond(self, method: Any, url: Any, options: dict[str, Any]) -> str:
        """Return the first part that only `requests` can send, such as "its data"; else ""."""
        why = "" if _TAKEN.issuperset(options) else _other_option(options)
        data, timeout = options.get("data"), options.get("timeout")
        if why:
            return why
        own = self.auth or self.params or self.proxies or self.stream or any(self.hooks.values())
        if own or not isinstance(self.cookies, CookieJar):
            why = "settings of the session"
        elif (type(self).send, HTTPAdapter.send) != _SENDS:
            why = "its own send"
        elif type(url) is not str or type(method) is not str or method.upper() not in METHODS:
            why = "its method or URL"
        elif data and (type(data) not in (str, bytes) or method.upper() == "HEAD"):
            why = "its data"
        elif timeout is not None and not _is_bound(timeout):
            why = "its timeout"
        return why

    def _site(self, sent: SentUrl, verify: Any, cert: Any) -> SessionSite | str:
        adapter: Any = self.get_adapter(sent.url)
        given = verify, cert, self.verify, self.cert
        key = (sent.place, adapter, self.trust_env, *given)
        now_s = monotonic()
        try:
            known = self._sites.get(key)
        except TypeError:  # a list in one of them
            return "its verify or cert"
        if known is None or known[0] < now_s:
            if len(self._sites) >= _SITES:
                self._sites.clear()
            found = found_site(self, sent.place, adapter, verify, cert)
            known = self._sites[key] = (now_s + LOOKED_AT_S, found)
        return known[1]

    def _sent_shortly(
        self, request: DescribedRequest, sent: SentUrl, site: SessionSite, options: dict[str, Any]
    ) -> requests.Response:
        fields: Any = request.headers._store  # type: ignore[attr-defined]
        body = None
        data = options.get("data")
        if data:
            request.body = data
            body = data.encode() if isinstance(data, str) else data
            fields["content-length"] = ("Content-Length", str(len(body)))
        elif request.method not in ("GET", "HEAD"):
            fields["content-length"] = ("Content-Length", "0")
        if next(iter(self.cookies), None) is not None:
            request.take_cookies(self.cookies)
        wire = SessionRequest(str(request.method), sent, site, fields, body)
        limits = _limits(options.get("timeout"), site.bound)
        try:
            phases = ExchangePhases(monotonic_ns())
            answer = self._client.exchange(wire, (), limits, phases, keep_body=True)
        except WIRE_ERRORS as error:
            raise as_requests(error, request) from error
        response = SessionResponse(request, answer, site)
        if "set-cookie" in response.headers:
            jar: Any = extract_cookies_to_jar
            jar(self.cookies, request, response.raw)
        if answer.status in REDIRECTS:
            return self._redirected(response, request, site, options)
        return response

    def _redirected(
        self,
        response: requests.Response,
        request: DescribedRequest,
        site: SessionSite,
        options: dict[str, Any],
    ) -> requests.Response:
        """Follow a redirect, by `requests`, and return the last response.

        With `allow_redirects` False returns `response`, with the request to send as its `next`.
        """
        verify, cert = options.get("verify"), options.get("cert")
        found = self.merge_environment_settings(site.place, {}, None, verify, cert)
        settings: dict[str, Any] = {**found, "timeout": options.get("timeout")}
        if not options.get("allow_redirects", True):
            settings["yield_requests"] = True
            following: Any = self.resolve_redirects(response, request, **settings)
            vars(response)["_next"] = next(following, None)
            return response
        history = [response, *self.resolve_redirects(response, request, **settings)]
        response = history.pop()
        response.history = history
        return response


@lru_cache(64)
def _limits(timeout: Any, bound: ResponseBound) -> RequestLimits:
    """Return the limits, seconds, for a timeout of `requests`: a number, a pair, or None."""
    connect_s, wait_s = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return RequestLimits(connect_s=connect_s or 0.0, wait_s=wait_s or 0.0, bound=bound)


def _other_option(options: dict[str, Any]) -> str:
    """Return "option NAME" for the first set option that only `requests` supports; else ""."""
    for name, value in options.items():
        if name not in _TAKEN and value is not None and (value or name == "json"):
            return f"option {name}"
    return ""


def _is_bound(timeout: Any) -> bool:
    """Return whether osbench's client supports a timeout: positive, or a pair of such or None."""
    if isinstance(timeout, tuple):
        return len(timeout) == 2 and all(one is None or _is_bound(one) for one in timeout)
    return type(timeout) in (int, float) and 0 < timeout < sys.maxsize


#: Errors that an exchange raises.
WIRE_ERRORS = (BadResponse, CannotConnect, CannotSecure, ConnectTimedOut, EarlyEnd, ReceiveTimedOut)


def as_requests(error: Exception, request: PreparedRequest) -> exceptions.RequestException:
    """Return the exception that `requests` would raise for `error`, an instance of `WIRE_ERRORS`.

    `requests` distinguishes a body that ends or stops from a head that does, and a connection that
    ends in the TLS handshake from a reset in it. A later message of TLS, such as a demand for a
    certificate, is an error of TLS.
    """
    kind: type[exceptions.RequestException] = exceptions.ConnectionError
    if isinstance(error, TooLongResponse):
        kind = exceptions.RequestException
    elif isinstance(error, DifferentLengths):
        kind = exceptions.InvalidHeader
    elif isinstance(error, ConnectTimedOut):
        kind = exceptions.ReadTimeout if error.connected else exceptions.ConnectTimeout
    elif isinstance(error, ReceiveTimedOut):
        kind = exceptions.ConnectionError if error.in_body else exceptions.ReadTimeout
    elif isinstance(error, CannotSecure):
        if not isinstance(error.__cause__, ConnectionError):
            kind = exceptions.SSLError
    elif isinstance(error.__cause__, ssl.SSLError):
        kind = exceptions.SSLError
    elif isinstance(error, BadResponse | EarlyEnd) and error.in_body:
        kind = exceptions.ChunkedEncodingError
    return kind(error, request=request)


class ClientSessions:
    """Replacement of the function of keystoneauth1 that creates a session of `requests`.

    keystoneauth1 has no option for it; its own test fixture for recorded requests replaces the same
    function. Use `install`; keystoneauth1 then calls the instance.
    """

    def __init__(self, short_way: ShortWay) -> None:
        self._short_way = short_way
        self._module: Any = keystoneauth_session
        self._construct = self._module._construct_session

    def install(self) -> None:
        """Make sessions that keystoneauth1 creates from now on, in this process, `FastSession`s."""
        self._module._construct_session = self

    def remove(self) -> None:
        """Restore keystoneauth1's own function; sessions created before stay as they are."""
        self._module._construct_session = self._construct

    def __call__(
        self, session_obj: requests.Session | None = None, **options: Any
    ) -> requests.Session:
        """Return `session_obj` if given; else a new FastSession; `options` are for its adapter."""
        made: requests.Session = self._construct(session_obj, **options)
        if session_obj:
            return made
        fast = FastSession(self._short_way)
        adapter = KeepAliveAdapter(self._short_way.bound, **options)
        for prefix in made.adapters:
            fast.mount(prefix, adapter)
        return fast
