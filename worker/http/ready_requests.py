"""Requests prepared from the arguments of scenarios and cached, for drivers of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from osbench.common.network.environment_proxy import proxy_of, shown_proxy
from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.worker.http.outgoing_request import OPTIONS, OutgoingRequest, snapshot, unable
from osbench.worker.http.tls_contexts import trust_of
from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.wire_errors import ReceiveTimedOut

#: Requests that are kept ready, at most.
READY = 256

_TAKEN = OPTIONS | {"cert"}


class RequestLimits:
    """Time limits of a request in seconds, 0 for none, and the size limit of its response."""

    __slots__ = ("bound", "connect_s", "wait_s", "whole_s")

    def __init__(
        self,
        *,
        connect_s: float = 0.0,
        wait_s: float = 0.0,
        whole_s: float = 0.0,
        bound: ResponseBound = UNBOUNDED,
    ) -> None:
        #: Name lookup, connecting and TLS.
        self.connect_s = connect_s
        #: Each wait for the peer to take bytes, or to send some.
        self.wait_s = wait_s
        #: All of the request.
        self.whole_s = whole_s
        #: Of a response that is kept, with its head.
        self.bound = bound

    def less(self, spent_s: float) -> RequestLimits:
        """Return the limits of a redirect, `spent_s` seconds after its first request began.

        Only the limit of the whole request shrinks; without it the same object is returned. Raises
        ReceiveTimedOut if no time is left.
        """
        if not self.whole_s:
            return self
        if spent_s >= self.whole_s:
            raise ReceiveTimedOut("timed out")
        return RequestLimits(
            connect_s=self.connect_s,
            wait_s=self.wait_s,
            whole_s=self.whole_s - spent_s,
            bound=self.bound,
        )


class ReadyRequest:
    """A request prepared for all calls with equal arguments: bytes, limits and TLS settings.

    Never changed, and shared by threads.
    """

    __slots__ = ("follows", "limits", "options", "repeatable", "request", "trust")

    def __init__(
        self,
        method: str,
        url: str,
        of_run: Sequence[str],
        options: Mapping[str, Any],
        bound: ResponseBound,
    ) -> None:
        """Prepare the request. `of_run`: header lines of every request.

        `options`: arguments of `requests.request`. Raises ValueError for a URL, a header or JSON
        data that cannot be sent.
        """
        self.options = snapshot(options)
        #: What TLS is to check, also where a redirect leads.
        self.trust = trust_of(options)
        self.limits = _limits(options.get("timeout"), bound)
        #: Whether redirects are followed.
        self.follows = bool(options.get("allow_redirects", True))
        outgoing = OutgoingRequest(method, url, of_run, (), options)
        self.request = PreparedRequest(outgoing, self.trust)
        #: Whether equal options make an equal request.
        self.repeatable = outgoing.repeatable


class ReadyRequests:
    """Cache of prepared requests by method and URL, for all threads; emptied at `READY` entries."""

    def __init__(self, of_run: Sequence[str], bound: ResponseBound) -> None:
        """`of_run` are header lines of every request, sent to the host of its URL only.

        `bound` limits responses whose body is kept.
        """
        self._bound = bound
        self._of_run = of_run
        self._kept: dict[tuple[str, str], ReadyRequest] = {}

    def get(self, method: str, url: str, options: Mapping[str, Any]) -> ReadyRequest | None:
        """Return the prepared request for these arguments; None if another client has to make it.

        `options` are the keyword arguments of `requests.request`. A cached request is returned if
        its options are equal. `beyond` returns the reason for None. Raises ValueError for a URL, a
        header or JSON data that cannot be sent.
        """
        ready = self._kept.get((method, url))
        if ready is None or ready.options != options:
            if beyond(method, url, options):
                return None
            ready = ReadyRequest(method, url, self._of_run, options, self._bound)
            if ready.repeatable:
                if len(self._kept) >= READY:
                    self._kept.clear()
                self._kept[(method, url)] = ready
        return ready


def beyond(method: str, url: str, options: Mapping[str, Any]) -> str:
    """Return why osbench's own client cannot make a request; "" if it can.

    The reason is an argument that only `requests` can send, or a proxy in the environment.
    """
    why = unable(method, url, _plain(options), _TAKEN)
    if why:
        return why
    proxy = proxy_of(url)
    return f"a proxy of the environment, {shown_proxy(proxy)}" if proxy else ""


def _plain(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace a valid pair of timeouts (connect, wait) by None, since `unable` would refuse it."""
    timeout = options.get("timeout")
    if isinstance(timeout, list | tuple) and len(timeout) == 2:
        given = [part for part in timeout if part is not None]
        if all(isinstance(part, int | float) and part > 0 for part in given):
            return {**options, "timeout": None}
    return options


def _limits(timeout: Any, bound: ResponseBound) -> RequestLimits:
    if isinstance(timeout, list | tuple):
        connect_s, wait_s = timeout
        return RequestLimits(connect_s=connect_s or 0.0, wait_s=wait_s or 0.0, bound=bound)
    return RequestLimits(whole_s=timeout or 0.0, bound=bound)
