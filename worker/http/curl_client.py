"""HTTP requests over libcurl: what goes through a proxy."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pycurl

from osbench.worker.http import addresses
from osbench.worker.http.outgoing_request import OutgoingRequest, unable
from osbench.worker.http.sent_again import IDEMPOTENT, not_again
from osbench.worker.http.tls_contexts import default_bundle
from osbench.worker.http.wire.prepared_request import AGENT

# variable parts of curl's messages: similar failures would not be grouped
_VARYING = re.compile(r" after \d+ (ms|milliseconds)( with \d+.*)?")


class _Handle(threading.local):
    """The curl handle of each thread."""

    def __init__(self) -> None:
        self.curl = pycurl.Curl()


class CurlClient:
    """One curl handle per thread, which keeps connections and no other state between requests."""

    def __init__(self, of_run: Sequence[str]) -> None:
        """`of_run` are header lines of every request, for the first host only, as in `status`."""
        self._of_run = of_run
        self._local = _Handle()

    def status(
        self, method: str, url: str, own: Sequence[str], options: Mapping[str, Any]
    ) -> int | None:
        """Make a request, read the whole response and return the status code.

        `options` are the keyword arguments of `requests.request`; `timeout` (seconds) bounds the
        whole request. `own` are header lines that are only sent to the host of `url`.
        Returns None, and sends nothing, where only requests can make this request.
        Raises TimeoutError, ConnectionError or ValueError.
        """
        if unable(method, url, options):
            return None
        curl = self._local.curl
        request = OutgoingRequest(method, url, self._of_run, own, options)
        _set_up(curl, request, options)
        # curl keeps cookies between requests, even through a reset; requests starts with none
        curl.setopt(pycurl.COOKIELIST, "ALL")
        code = _send(curl, request)
        if code in addresses.REDIRECTS and options.get("allow_redirects", True):
            return _follow(curl, request, code, options)
        return code


def _follow(
    curl: pycurl.Curl, request: OutgoingRequest, code: int, options: Mapping[str, Any]
) -> int:
    first = f"{request.verb} {addresses.shown(request.url)}"
    left = addresses.REDIRECT_LIMIT
    while code in addresses.REDIRECTS and (location := curl.getinfo(pycurl.REDIRECT_URL)):
        if not left:
            raise ConnectionError(f"{first}: more than {addresses.REDIRECT_LIMIT} redirects")
        left -= 1
        request.redirect(code, location)
        _set_up(curl, request, options)
        code = _send(curl, request)
    return code


def _set_up(curl: pycurl.Curl, request: OutgoingRequest, options: Mapping[str, Any]) -> None:
    """Prepare the handle for a request, except for its header lines."""
    # otherwise options or the body of the previous request would be sent
    curl.reset()
    setopt = curl.setopt
    setopt(pycurl.NOSIGNAL, 1)
    # keep cookies in memory: those set by a redirect are sent to its target
    setopt(pycurl.COOKIEFILE, "")
    setopt(pycurl.URL, request.url)
    setopt(pycurl.USERAGENT, AGENT)
    # discards the body: returns the size of each chunk without running Python code
    setopt(pycurl.WRITEFUNCTION, len)
    repeatable = request.verb in IDEMPOTENT
    if request.verb == "HEAD":
        setopt(pycurl.NOBODY, 1)
    elif request.body is not None:
        _set_body(curl, request.body, repeatable=repeatable)
        setopt(pycurl.CUSTOMREQUEST, request.verb)
    elif request.verb != "GET":
        setopt(pycurl.CUSTOMREQUEST, request.verb)
    if not repeatable and not request.body:
        # curl sends any request again whose kept connection ended without an answer, but for one
        # whose body it cannot rewind
        setopt(pycurl.FRESH_CONNECT, 1)
    timeout_s = options.get("timeout")
    if timeout_s is not None:
        setopt(pycurl.TIMEOUT_MS, max(1, int(timeout_s * 1000)))
    if request.url.startswith("https"):
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


def _send(curl: pycurl.Curl, request: OutgoingRequest) -> int:
    curl.setopt(pycurl.HTTPHEADER, _lines(request))
    try:
        curl.perform()
    except pycurl.error as error:
        raise _translated(error, request.verb, request.url) from error
    code: int = curl.getinfo(pycurl.RESPONSE_CODE)
    return code


def _lines(request: OutgoingRequest) -> list[str]:
    """Header lines for curl, whose defaults they override."""
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


def _translated(error: pycurl.error, method: str, url: str) -> Exception:
    code, text = error.args
    said = not_again(method.upper()) if code == pycurl.E_SEND_FAIL_REWIND else text
    message = f"{method.upper()} {addresses.shown(url)}: {_VARYING.sub('', said)}"
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return TimeoutError(message)
    if code == pycurl.E_URL_MALFORMAT:
        return ValueError(message)
    return ConnectionError(message)
