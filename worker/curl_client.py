"""HTTP requests over libcurl: like requests where only the status counts, at far less CPU."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from typing import Any

import pycurl
import requests.utils

import osbench
from osbench.worker import addresses
from osbench.worker.curl_request import CurlRequest

AGENT = f"osbench/{osbench.__version__}"

# parts of curl's messages that differ each time and would keep like failures apart
_VARYING = re.compile(r" after \d+ (ms|milliseconds)( with \d+.*)?")


class CurlClient:
    """One curl handle a thread; connections are kept, everything else is new each request."""

    def __init__(self) -> None:
        self._local = threading.local()

    def status(self, method: str, url: str, own: Mapping[str, str], **options: Any) -> int:
        """Make a request, read its answer to the end and give the status code.

        `options` are those of `requests.request` that `curl_request.takes`; `timeout` (seconds)
        bounds the whole request. `own` are headers that no other host than that of `url` gets
        to see. Raises TimeoutError, ConnectionError or ValueError.
        """
        request = CurlRequest(method, url, own, options)
        timeout_s, verify = options.get("timeout"), options.get("verify", True)
        curl = self._handle()
        # the jar outlives a reset; requests starts with an empty one, too
        curl.setopt(pycurl.COOKIELIST, "ALL")
        code = _perform(curl, request, timeout_s, verify)
        if code in addresses.REDIRECTS and options.get("allow_redirects", True):
            left = addresses.REDIRECT_LIMIT
            while code in addresses.REDIRECTS and (to := curl.getinfo(pycurl.REDIRECT_URL)):
                if not left:
                    raise ConnectionError(
                        f"{method.upper()} {addresses.shown(url)}: more than "
                        f"{addresses.REDIRECT_LIMIT} redirects"
                    )
                left -= 1
                request.redirect(code, to)
                code = _perform(curl, request, timeout_s, verify)
        return code

    def _handle(self) -> pycurl.Curl:
        curl: pycurl.Curl | None = getattr(self._local, "curl", None)
        if curl is None:
            curl = self._local.curl = pycurl.Curl()
        return curl


def _perform(
    curl: pycurl.Curl, request: CurlRequest, timeout_s: float | None, verify: bool | str
) -> int:
    # without it an option, header or body of the request before would go with this one
    curl.reset()
    setopt = curl.setopt
    setopt(pycurl.NOSIGNAL, 1)
    # keep cookies in memory: those that a redirect sets are for where it leads
    setopt(pycurl.COOKIEFILE, "")
    setopt(pycurl.URL, request.url)
    setopt(pycurl.USERAGENT, AGENT)
    setopt(pycurl.HTTPHEADER, request.fields)
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
    if timeout_s is not None:
        setopt(pycurl.TIMEOUT_MS, max(1, int(timeout_s * 1000)))
    if request.url.startswith("https"):
        _secure(curl, verify)
    try:
        curl.perform()
    except pycurl.error as error:
        raise _translated(error, request) from error
    code: int = curl.getinfo(pycurl.RESPONSE_CODE)
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


def _translated(error: pycurl.error, request: CurlRequest) -> Exception:
    code, text = error.args
    message = f"{request.verb} {addresses.shown(request.url)}: {_VARYING.sub('', text)}"
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return TimeoutError(message)
    if code == pycurl.E_URL_MALFORMAT:
        return ValueError(message)
    return ConnectionError(message)
