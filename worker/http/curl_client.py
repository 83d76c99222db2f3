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

# constants used with every request
_FIELDS, _JAR, _COOKIES = pycurl.HTTPHEADER, pycurl.INFO_COOKIELIST, pycurl.COOKIELIST
_CODE = pycurl.RESPONSE_CODE

# variable parts of curl's messages: similar failures would not be grouped
_VARYING = re.compile(r" after \d+ (ms|milliseconds)( with \d+.*)?")


class _ThreadState:
    """The state that a thread keeps between requests: its handle and the handle's set-up."""

    __slots__ = ("curl", "fixed", "ready")

    def __init__(self) -> None:
        self.curl = pycurl.Curl()
        #: Method, URL and options of a request that can be repeated by setting only its header
        #: lines; None where the handle must be set up again.
        self.ready: tuple[str, str, Mapping[str, Any]] | None = None
        #: The header lines of that request that are the same each time.
        self.fixed: list[str] = []


class _Local(threading.local):
    """The state of each thread."""

    def __init__(self) -> None:
        self.state = _ThreadState()


class CurlClient:
    """One curl handle per thread, which keeps connections and no other state between requests."""

    def __init__(self, of_run: Sequence[str]) -> None:
        """`of_run` are header lines of every request, for the first host only, as in `status`."""
        self._of_run = of_run
        self._local = _Local()

    def status(
        self, method: str, url: str, own: Sequence[str], options: Mapping[str, Any]
    ) -> int | None:
        """Make a request, read the whole response and return the status code.

        `options` are the keyword arguments of `requests.request`; `timeout` (seconds) bounds the
        whole request. `own` are header lines that are only sent to the host of `url`.
        Returns None, and sends nothing, where only requests can make this request.
        Raises TimeoutError, ConnectionError or ValueError.
        """
        state = self._local.state
        curl = state.curl
        if state.ready == (method, url, options):
            fields = [*own, *state.fixed]
            # curl keeps cookies between requests; requests starts with none
            if curl.getinfo(_JAR):
                curl.setopt(_COOKIES, "ALL")
        else:
            state.ready = None
            if not takes(method, url, options):
                return None
            request = CurlRequest(method, url, self._of_run, own, options)
            _set_up(curl, request, options)
            # cookies even survive a reset
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
    """Prepare the handle for a request, except for its header lines."""
    # otherwise options or the body of the previous request would be sent
    curl.reset()
    setopt = curl.setopt
    setopt(pycurl.NOSIGNAL, 1)
    # keep cookies in memory: those set by a redirect are sent to its target
    setopt(pycurl.COOKIEFILE, "")
    setopt(pycurl.URL, request.url)
    setopt(pycurl.USERAGENT, AGENT)
    if not getproxies_environment():
        # saves curl the search for a proxy with every request
        setopt(pycurl.PROXY, "")
    # discards the body: returns the size of each chunk without running Python code
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
    # as requests does; curl would negotiate HTTP/2
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
