"""HTTP requests over libcurl: like requests where only the status counts, at far less CPU."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.request import getproxies_environment

import pycurl
import requests.utils

import osbench
from osbench.worker.http import addresses
from osbench.worker.http.curl_request import CurlRequest, snapshot, takes

AGENT = f"osbench/{osbench.__version__}"

# looked up with every request
_FIELDS, _JAR, _COOKIES = pycurl.HTTPHEADER, pycurl.INFO_COOKIELIST, pycurl.COOKIELIST
_CODE = pycurl.RESPONSE_CODE

# parts of curl's messages that differ each time and would keep like failures apart
_VARYING = re.compile(r" after \d+ (ms|milliseconds)( with \d+.*)?")


class _ThreadState:
    """What a thread keeps between requests: its handle, and what the handle is set up for."""

    __slots__ = ("curl", "fixed", "ready")

    def __init__(self) -> None:
        self.curl = pycurl.Curl()
        #: Method, URL and options of a request that needs nothing but its header lines to be
        #: made again; None where the handle must be set up anew.
        self.ready: tuple[str, str, Mapping[str, Any]] | None = None
        #: Its header lines that are the same each time.
        self.fixed: list[str] = []


class _Local(threading.local):
    """The state of each thread."""

    def __init__(self) -> None:
        self.state = _ThreadState()


class CurlClient:
    """One curl handle a thread; it keeps connections, and nothing else of earlier requests."""

    def __init__(self, of_run: Sequence[str]) -> None:
        """`of_run` are header lines of every request, private as those in `own` of `status`."""
        self._of_run = of_run
        self._local = _Local()

    def status(
        self, method: str, url: str, own: Sequence[str], options: Mapping[str, Any]
    ) -> int | None:
        """Make a request, read its answer to the end and give the status code.

        `options` are the keyword arguments of `requests.request`; `timeout` (seconds) bounds the
        whole request. `own` are header lines that no other host than that of `url` gets to see.
        Returns None, and sends nothing, where only requests can make this request.
        Raises TimeoutError, ConnectionError or ValueError.
        """
        state = self._local.state
        curl = state.curl
        if state.ready == (method, url, options):
            fields = [*own, *state.fixed]
            # the jar outlives the request; requests starts with an empty one, too
            if curl.getinfo(_JAR):
                curl.setopt(_COOKIES, "ALL")
        else:
            state.ready = None
            if not takes(method, url, options):
                return None
            request = CurlRequest(method, url, self._of_run, own, options)
            _set_up(curl, request, options)
            # and even a reset
            curl.setopt(_COOKIES, "ALL")
            fields = request.fields
            if request.repeatable:
                state.ready = (method, url, snapshot(options))
                state.fixed = request.fixed
        code = _send(curl, fields, method, url)
        if code in addresses.REDIRECTS and options.get("allow_redirects", True):
            state.ready = None
            request = CurlRequest(method, url, self._of_run, own, options)
            return _follow(curl, request, code, options)
        return code


def _follow(curl: pycurl.Curl, request: CurlRequest, code: int, options: Mapping[str, Any]) -> int:
    first = f"{request.verb} {addresses.shown(request.url)}"
    left = addresses.REDIRECT_LIMIT
    while code in addresses.REDIRECTS and (location := curl.getinfo(pycurl.REDIRECT_URL)):
        if not left:
            raise ConnectionError(f"{first}: more than {addresses.REDIRECT_LIMIT} redirects")
        left -= 1
        request.redirect(code, location)
        _set_up(curl, request, options)
        code = _send(curl, request.fields, request.verb, request.url)
    return code


def _set_up(curl: pycurl.Curl, request: CurlRequest, options: Mapping[str, Any]) -> None:
    """Prepare the handle for a request, all but its header lines."""
    # without it an option or body of the request before would go with this one
    curl.reset()
    setopt = curl.setopt
    setopt(pycurl.NOSIGNAL, 1)
    # keep cookies in memory: those that a redirect sets are for where it leads
    setopt(pycurl.COOKIEFILE, "")
    setopt(pycurl.URL, request.url)
    setopt(pycurl.USERAGENT, AGENT)
    if not getproxies_environment():
        # none to look for with every request
        setopt(pycurl.PROXY, "")
    # a sink: says that all of a chunk was taken, without a line of Python
    setopt(pycurl.WRITEFUNCTION, len)
    if request.verb == "HEAD":
        setopt(pycurl.NOBODY, 1)
    elif request.body is not None:
        # an empty body, too, so that Content-Length: 0 is sent
        setopt(pycurl.POSTFIELDS, request.body)
        setopt(pycurl.CUSTOMREQUEST, request.verb)
    elif request.verb != "GET":
        setopt(pycurl.CUSTOMREQUEST, request.verb)
    timeout_s = options.get("timeout")
    if timeout_s is not None:
        setopt(pycurl.TIMEOUT_MS, max(1, int(timeout_s * 1000)))
    if request.url.startswith("https"):
        _secure(curl, options.get("verify", True))


def _send(curl: pycurl.Curl, fields: list[str], method: str, url: str) -> int:
    curl.setopt(_FIELDS, fields)
    try:
        curl.perform()
    except pycurl.error as error:
        raise _translated(error, method, url) from error
    code: int = curl.getinfo(_CODE)
    return code


def _secure(curl: pycurl.Curl, verify: bool | str) -> None:
    # what requests speaks; curl would ask for HTTP/2
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    if verify is False:
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
        return
    bundle = verify if isinstance(verify, str) else _default_bundle()
    curl.setopt(pycurl.CAPATH if os.path.isdir(bundle) else pycurl.CAINFO, bundle)  # noqa: PTH112 - hot


def _default_bundle() -> str:
    environ = os.environ
    return (
        environ.get("REQUESTS_CA_BUNDLE")
        or environ.get("CURL_CA_BUNDLE")
        or requests.utils.DEFAULT_CA_BUNDLE_PATH
    )


def _translated(error: pycurl.error, method: str, url: str) -> Exception:
    code, text = error.args
    message = f"{method.upper()} {addresses.shown(url)}: {_VARYING.sub('', text)}"
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return TimeoutError(message)
    if code == pycurl.E_URL_MALFORMAT:
        return ValueError(message)
    return ConnectionError(message)
