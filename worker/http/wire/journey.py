"""Redirects of a request: makes the requests that they lead to, by the rules of browsers."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from requests.utils import requote_uri

from osbench.common.network.environment_proxy import proxy_of
from osbench.worker.http import addresses
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.raw_response import RawResponse


class Journey:
    """A request on its way through redirects; used for one request, by one thread.

    `request` and `own` are the request to send now, and its additional header lines.
    """

    __slots__ = ("_cookies", "_left", "_trust", "own", "request")

    def __init__(
        self,
        request: PreparedRequest,
        own: Sequence[str],
        trust: object = None,
        cookies: Cookies | None = None,
    ) -> None:
        """Begin with `request`. `own`: header lines for the first host only.

        `trust`: TLS settings for all hosts. `cookies` are the cookies of a virtual user; with None
        the journey has its own.
        """
        self._trust = trust
        self._cookies = cookies
        self._left = addresses.REDIRECT_LIMIT
        #: What is to be sent now, with these header lines.
        self.request = request
        self.own = own

    def follow(self, response: RawResponse) -> bool:
        """Set `request` and `own` to the target of a redirect; return False if it names none.

        Keeps the cookies that the redirect sets, and sends the cookies that apply to the target.
        Raises ConnectionError after `REDIRECT_LIMIT` redirects and for a redirect that needs a
        proxy, and ValueError for a target that is not HTTP or not a URL.
        """
        request = self.request
        locations = response.values("location")
        if not locations or not locations[0]:
            return False
        if not self._left:
            raise ConnectionError(
                f"more than {addresses.REDIRECT_LIMIT} redirects; correct the service, or set "
                "allow_redirects: false"
            )
        self._left -= 1
        outgoing = request.outgoing.with_own(self.own)
        target = _target(request.url, locations[0])
        there = addresses.host(target), urlsplit(target).scheme == "https"
        if there != (request.host, request.secure) and proxy_of(target):
            # the first one goes there directly, and only libcurl knows the other way
            raise ConnectionError(
                f"redirects to {addresses.shown_url(target)}, for which the environment has a "
                "proxy: name both hosts in no_proxy, or neither"
            )
        outgoing.redirect(response.status, target)
        if self._cookies is None and response.values("set-cookie"):
            self._cookies = Cookies()
        if self._cookies is not None:
            self._cookies.take(response)
            cookies = self._cookies.header(outgoing.url)
            if cookies:
                outgoing.fixed = [*outgoing.fixed, ("Cookie", cookies)]
        self.own = ()
        self.request = PreparedRequest(outgoing, self._trust)
        return True


def _target(url: str, location: str) -> str:
    """Return the absolute URL of a Location, relative to `url`. Raises ValueError if invalid."""
    try:
        target = _absolute(url, location)
        # reading the port checks it
        _ = urlsplit(target).port
    except ValueError:
        # the cause may show a part of a password
        raise ValueError(
            f"{addresses.shown_url(url)} redirects to an invalid URL; correct the service, or "
            "set allow_redirects: false"
        ) from None
    return target


def _absolute(url: str, location: str) -> str:
    """Return the URL of a Location header (latin-1), relative to `url`, quoted as by `requests`."""
    # servers send UTF-8 where latin-1 is meant to be
    location = location.encode("latin-1").decode("utf-8", "replace")
    if location.startswith("//"):
        location = f"{urlsplit(url).scheme}:{location}"
    parts = urlsplit(location)
    if not parts.netloc:
        return urljoin(url, requote_uri(location))
    return str(requote_uri(parts.geturl()))
