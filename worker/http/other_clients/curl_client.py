"""HTTP client over libcurl, for requests that go through a proxy."""

from __future__ import annotations

import io
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pycurl

from osbench.common.network.causes import with_remedy
from osbench.common.network.environment_proxy import no_connection, proxy_of, shown_proxy
from osbench.worker.http import addresses
from osbench.worker.http.other_clients.other_exchange import OtherExchange
from osbench.worker.http.outgoing_request import OutgoingRequest, unable
from osbench.worker.http.sent_again import IDEMPOTENT, not_again
from osbench.worker.http.tls_contexts import default_bundle
from osbench.worker.http.wire.content_codings import UnkeptBody
from osbench.worker.http.wire.cookies import BrowserJar
from osbench.worker.http.wire.prepared_request import AGENT
from osbench.worker.http.wire.response_head import PARTIAL

# variable parts of curl's messages: similar failures would not be grouped
_VARYING = re.compile(r" after \d+ (ms|milliseconds)( with \d+.*)?")


#: The addresses of a host in any order; pycurl has no name for it.
_DNS_SHUFFLE_ADDRESSES = 275


class _Handle(threading.local):
    """A curl handle for each thread; made at the thread's first request."""

    def __init__(self) -> None:
        self.curl = pycurl.Curl()


class CurlClient:
    """HTTP client with a curl handle per thread; only connections are kept between requests.

    Response bodies are checked and discarded.
    """

    def __init__(self, of_run: Sequence[str]) -> None:
        """`of_run`: header lines of every request, sent to the host of its URL only."""
        self._of_run = of_run
        self._local = _Handle()

    def status(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        exchange: OtherExchange | None = None,
    ) -> int | None:
        """Make a request, follow its redirects, read the last response and return its status code.

        `options` are the keyword arguments of `requests.request`; `timeout` (seconds) bounds the
        request with its redirects. `own`: header lines for the host of `url` only. `exchange` notes
        if a body is false, that is cut short or not in its content codings.

        Returns None, and sends nothing, if only `requests` can make this request. Raises
        TimeoutError, ConnectionError or ValueError.
        """
        if unable(method, url, options):
            return None
        curl = self._local.curl
        request = OutgoingRequest(method, url, self._of_run, own, options)
        timeout_s = options.get("timeout")
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        _set_up(curl, request, options, ends_at)
        exchange = exchange or OtherExchange()
        response = _send(curl, request, exchange)
        if response.code in addresses.REDIRECTS and options.get("allow_redirects", True):
            return _follow(curl, request, response, options, ends_at, exchange)
        return response.code


class _UnkeptAnswer:
    """A response whose body is checked against its content codings and discarded.

    `line` and `append` are callbacks of curl.
    """

    def __init__(self) -> None:
        self.code = 0
        #: The lines Set-Cookie of its head.
        self.cookies: list[str] = []
        self._codings: list[str] = []
        self._body: UnkeptBody | None = None

    def line(self, line: bytes) -> None:
        """Take a header line; a status line begins a new head, such as after the head of a proxy.

        Only Content-Encoding and Set-Cookie are noted.
        """
        name, _, value = line.partition(b":")
        name = name.lower()
        if name.startswith(b"http/"):
            self._codings, self.cookies = [], []
        elif name == b"content-encoding":
            self._codings.append(value.decode("latin-1"))
        elif name == b"set-cookie":
            self.cookies.append(value.decode("latin-1").strip("\r\n"))

    def append(self, data: bytes) -> None:
        if self._body is None:
            self._body = UnkeptBody(",".join(self._codings))
        self._body.append(data)

    def is_false(self) -> bool:
        """False without a body, and for a part of a body (status 206)."""
        return self.code != PARTIAL and self._body is not None and self._body.is_false()


def _follow(
    curl: pycurl.Curl,
    request: OutgoingRequest,
    response: _UnkeptAnswer,
    options: Mapping[str, Any],
    ends_at: float | None,
    exchange: OtherExchange,
) -> int:
    first = f"{request.verb} {addresses.shown_url(request.url)}"
    left = addresses.REDIRECT_LIMIT
    cookies = BrowserJar()
    while response.code in addresses.REDIRECTS and (location := curl.getinfo(pycurl.REDIRECT_URL)):
        if not left:
            raise ConnectionError(
                f"{first}: more than {addresses.REDIRECT_LIMIT} redirects; correct the service, or "
                "set allow_redirects: false"
            )
        if ends_at is not None and time.monotonic() >= ends_at:
            raise TimeoutError(f"{first}: Operation timed out")
        left -= 1
        cookies.take(response.cookies, request.url)
        request.redirect(response.code, location)
        if line := cookies.line(request.url):
            request.fixed.append(("Cookie", line))
        _set_up(curl, request, options, ends_at)
        response = _send(curl, request, exchange)
    return response.code


def _set_up(
    curl: pycurl.Curl,
    request: OutgoingRequest,
    options: Mapping[str, Any],
    ends_at: float | None,
) -> None:
    """Reset the curl handle and set all options of a request, except for its header lines.

    `ends_at`: when it times out, monotonic s; None for no limit. The proxy comes from the
    environment; of `options` only `verify` is read.
    """
    # otherwise options or the body of the previous request would be sent
    curl.reset()
    setopt = curl.setopt
    setopt(pycurl.NOSIGNAL, 1)
    setopt(pycurl.URL, request.url)
    setopt(pycurl.USERAGENT, AGENT)
    # not left to curl: it does not know the variables in capitals, and reads no_proxy otherwise
    setopt(pycurl.PROXY, proxy_of(request.url))
    setopt(pycurl.NOPROXY, "")
    setopt(_DNS_SHUFFLE_ADDRESSES, 1)
    repeatable = request.verb in IDEMPOTENT
    if request.verb == "HEAD":
        setopt(pycurl.NOBODY, 1)
    elif request.body is not None:
        _set_body(curl, request.body, repeatable=repeatable)
        setopt(pycurl.CUSTOMREQUEST, request.verb)
    elif request.verb != "GET":
        setopt(pycurl.CUSTOMREQUEST, request.verb)
    if not repeatable and not request.body:
        # curl sends any request again whose kept connection ended without a response, but for one
        # whose body it cannot rewind
        setopt(pycurl.FRESH_CONNECT, 1)
    if ends_at is not None:
        setopt(pycurl.TIMEOUT_MS, max(1, int((ends_at - time.monotonic()) * 1000)))
    if urlsplit(request.url).scheme == "https":
        _secure(curl, options.get("verify", True))


def _set_body(curl: pycurl.Curl, body: bytes, *, repeatable: bool) -> None:
    setopt = curl.setopt
    if repeatable or not body:
        # an empty body, too, so that Content-Length: 0 is sent
        setopt(pycurl.POSTFIELDS, body)
        return
    # curl cannot rewind this one
    setopt(pycurl.POST, 1)
    setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
    setopt(pycurl.READFUNCTION, io.BytesIO(body).read)


def _send(curl: pycurl.Curl, request: OutgoingRequest, exchange: OtherExchange) -> _UnkeptAnswer:
    curl.setopt(pycurl.HTTPHEADER, _lines(request))
    response = _UnkeptAnswer()
    curl.setopt(pycurl.HEADERFUNCTION, response.line)
    curl.setopt(pycurl.WRITEFUNCTION, response.append)
    try:
        curl.perform()
    except pycurl.error as error:
        raise _translated_error(error, request, curl) from error
    response.code = curl.getinfo(pycurl.RESPONSE_CODE)
    exchange.false_body |= response.is_false()
    return response


def _lines(request: OutgoingRequest) -> list[str]:
    """Return header lines for curl; `Name:` without a value keeps it from sending its own."""
    fields = request.fields
    lines = [_line(name, value) for name, value in fields]
    if request.body is not None:
        # without a body curl sends neither header
        named = {name.lower() for name, _ in fields}
        lines += [f"{name}:" for name in ("Content-Type", "Expect") if name.lower() not in named]
    return lines


def _line(name: str, value: str | None) -> str:
    if value is None:
        return f"{name}:"
    return f"{name}: {value}" if value else f"{name};"


def _secure(curl: pycurl.Curl, verify: bool | str) -> None:
    # as requests does; curl would negotiate HTTP/2
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    if verify is False:
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
        return
    bundle = verify if isinstance(verify, str) else default_bundle()
    curl.setopt(pycurl.CAPATH if os.path.isdir(bundle) else pycurl.CAINFO, bundle)  # noqa: PTH112 - hot


def _translated_error(
    error: pycurl.error, request: OutgoingRequest, curl: pycurl.Curl
) -> Exception:
    code, text = error.args
    place, proxy = f"{request.verb} {addresses.shown_url(request.url)}", proxy_of(request.url)
    reason = _VARYING.sub("", text)
    if code == pycurl.E_SEND_FAIL_REWIND:
        reason = not_again(request.verb)
    elif proxy and code == pycurl.E_COULDNT_CONNECT:
        number = curl.getinfo(pycurl.OS_ERRNO)
        reason = no_connection(proxy, os.strerror(number) if number else reason)
    elif proxy and code == pycurl.E_COULDNT_RESOLVE_PROXY:
        reason = no_connection(proxy, "its name is not known")
    elif proxy:
        reason = f"through the proxy {shown_proxy(proxy)}: {reason}"
    message = f"{place}: {with_remedy(reason)}"
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return TimeoutError(message)
    if code == pycurl.E_URL_MALFORMAT:
        return ValueError(message)
    return ConnectionError(message)
