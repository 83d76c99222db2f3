"""Choice of the HTTP client of each request: osbench's, libcurl for a proxy, else `requests`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast
from urllib.request import getproxies

from osbench.common.network.response_bound import BOUND_KEY, USUAL, ResponseBound
from osbench.common.plugin.atomic import Recorder
from osbench.common.plugin.entry_points import load_object, names
from osbench.worker.http.observer import OBSERVER_KEY, Observer
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.opening import Opener
from osbench.worker.http.other_clients.other_exchange import OtherExchange
from osbench.worker.http.outgoing_request import unable
from osbench.worker.http.ready_requests import beyond
from osbench.worker.http.server_names import HTTP_KEY, ServerNames
from osbench.worker.http.socket_client import SocketClient
from osbench.worker.http.user.http_response import WholeResponse
from osbench.worker.http.user.request_base import AskedRequest
from osbench.worker.http.wire.cookies import Cookies

if TYPE_CHECKING:
    from osbench.worker.http.other_clients.curl_client import CurlClient
    from osbench.worker.http.other_clients.requests_client import RequestsClient

LOG = logging.getLogger(__name__)

#: A task's key `http` without values.
NO_WISH: Mapping[str, Any] = MappingProxyType({})


class ConnectionRules(Protocol):
    """Rules of a task on connections: an entry point `osbench.http_rules` for each key of `http`.

    It is a class with one argument, the task's key `http`. Raises FleetError if this host cannot
    keep the rules.
    """

    #: Opens connections that keep the rules.
    opener: Opener

    @staticmethod
    def faults(wish: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield key and message of each mistake in `wish` that the JSON schema cannot find."""

    def others(
        self, of_run: Sequence[str], bound: ResponseBound
    ) -> tuple[CurlClient, RequestsClient]:
        """Return libcurl and `requests` with the rules, as far as they can keep them."""


def connection_rules(wish: Mapping[str, Any]) -> ConnectionRules | None:
    """Return the rules for the task's key `http`, None without any. Raises PluginError."""
    ruled = sorted(names("http_rules") & wish.keys())
    return cast(ConnectionRules, load_object("http_rules", ruled[0])(wish)) if ruled else None


class HttpClients:
    """The HTTP clients of a workload, shared by all its virtual users in a process.

    Each request is made by osbench's own client, of threads or of event loops, if it can; else by
    libcurl (only requests whose body is discarded) or by the library `requests`.
    """

    def __init__(
        self,
        of_run: Sequence[str],
        bound: ResponseBound = USUAL,
        *,
        observer: Observer | None = None,
        wish: Mapping[str, Any] = NO_WISH,
    ) -> None:
        """Create all clients. `of_run`: header lines of each request, for the host of its URL only.

        `bound` limits responses whose body is kept. `observer` is called with the requests of
        osbench's own clients and their responses, not of libcurl or `requests`. `wish`: the task's
        key `http`, by which reports count requests, and connections have rules.
        """
        servers = ServerNames(wish["by"]) if wish.get("by") else None
        rules = self._rules = connection_rules(wish)
        opener = Opener() if rules is None else rules.opener
        own: Any = {"observer": observer, "servers": servers, "opener": opener}
        self._of_loop = LoopClient(of_run, bound, **own)
        self._of_threads = SocketClient(of_run, bound=bound, **own)
        self._of_run, self._bound = of_run, bound
        #: libcurl and `requests`, once a request needs them.
        self._made_others: tuple[CurlClient, RequestsClient] | None = None
        self._said: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    @classmethod
    def of_workload(cls, run: str, context: Mapping[str, Any]) -> Self:
        """Return the clients of a workload; each request has the header X-Osbench-Run: `run`.

        The bound of responses, the observer and the task's key `http` come from `context` (keys
        BOUND_KEY, OBSERVER_KEY, HTTP_KEY), if it has them.
        """
        of_run = [f"X-Osbench-Run: {run}"]
        bound, wish = context.get(BOUND_KEY, USUAL), context.get(HTTP_KEY, NO_WISH)
        found = cls(of_run, bound, observer=context.get(OBSERVER_KEY), wish=wish)
        if getproxies() or "proxies" in str(context.get("args")):
            # the first request would wait for the imports; a wrong guess costs memory alone
            found._others()
        return found

    def status(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        recorder: Recorder,
    ) -> Coroutine[Any, Any, int]:
        """Make a request and read the whole response; the coroutine returns the status code.

        `options` are the keyword arguments of `requests.request`. `timeout` (seconds) bounds the
        whole request, a pair the time to connect and each wait; the library `requests` applies it
        to connecting and each wait. `own` are header lines that are only sent to the host of `url`.
        `recorder` is the recorder of the iteration: it gets the measurements, and runs blocking
        clients in a thread. Raises TimeoutError, ConnectionError or ValueError, and the exceptions
        of `requests` for wrong arguments, some of them at the call itself.
        """
        ready = self._of_loop.ready(method, url, options)
        if ready is not None:
            return self._of_loop.status(ready, own, recorder)
        return self._status_elsewhere(method, url, own, options, recorder)

    async def _status_elsewhere(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        recorder: Recorder,
    ) -> int:
        client = "requests" if unable(method, url, options) else "libcurl"
        with self._noted(client, beyond(method, url, options), recorder) as exchange:
            call = partial(self._status_by_others, method, url, own, options, exchange)
            status: int = await recorder.run_blocking(call)
        return status

    def blocking_status(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        recorder: Recorder,
    ) -> int:
        """Make a request and return the status code; blocks this thread.

        Arguments and errors: see `status`.
        """
        response = self._of_threads.request(
            method, url, own, options, keep_body=False, recorder=recorder
        )
        if response is not None:
            return response.status
        client = "requests" if unable(method, url, options) else "libcurl"
        with self._noted(client, beyond(method, url, options), recorder) as exchange:
            return self._status_by_others(method, url, own, options, exchange)

    def answer(
        self, asked: AskedRequest, recorder: Recorder, cookies: Cookies
    ) -> Coroutine[Any, Any, WholeResponse]:
        """Make a request of a virtual user; the coroutine returns the last response.

        `asked`: the request, and whether its body is kept. The user's `cookies` are sent, and get
        the cookies that responses set. `recorder` gets the measurements. Raises the exceptions of
        `status`.
        """
        made = self._of_loop.request(
            asked.method,
            asked.url,
            asked.own,
            asked.options,
            keep_body=asked.keep_body,
            recorder=recorder,
            cookies=cookies,
        )
        return self._answer_elsewhere(asked, recorder, cookies) if made is None else made

    async def _answer_elsewhere(
        self, asked: AskedRequest, recorder: Recorder, cookies: Cookies
    ) -> WholeResponse:
        why = beyond(asked.method, asked.url, asked.options)
        with self._noted("requests", why, recorder) as exchange:
            call = partial(self._answer_by_requests, asked, exchange, cookies)
            other: WholeResponse = await recorder.run_blocking(call)
        return other

    def blocking_answer(
        self, asked: AskedRequest, recorder: Recorder, cookies: Cookies
    ) -> WholeResponse:
        """Make a request of a virtual user and return the response; blocks this thread.

        Arguments and errors: see `answer`.
        """
        response = self._of_threads.request(
            asked.method,
            asked.url,
            asked.own,
            asked.options,
            keep_body=asked.keep_body,
            recorder=recorder,
            cookies=cookies,
        )
        if response is not None:
            return response
        why = beyond(asked.method, asked.url, asked.options)
        with self._noted("requests", why, recorder) as exchange:
            return self._answer_by_requests(asked, exchange, cookies)

    def _others(self) -> tuple[CurlClient, RequestsClient]:
        with self._lock:
            if self._made_others is None:
                # their libraries take 6 MB, and few requests need them
                from osbench.worker.http.other_clients.curl_client import CurlClient  # noqa: PLC0415 - see above
                from osbench.worker.http.other_clients.requests_client import RequestsClient  # noqa: PLC0415 - see above

                curl = CurlClient(self._of_run)
                self._made_others = curl, RequestsClient(self._of_run, self._bound)
                if self._rules is not None:
                    self._made_others = self._rules.others(self._of_run, self._bound)
            return self._made_others

    def _answer_by_requests(
        self, asked: AskedRequest, exchange: OtherExchange, cookies: Cookies
    ) -> WholeResponse:
        _, others = self._others()
        return others.answer(
            asked.method,
            asked.url,
            asked.own,
            asked.options,
            cookies,
            keep_body=asked.keep_body,
            exchange=exchange,
        )

    def _status_by_others(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        exchange: OtherExchange,
    ) -> int:
        curl, others = self._others()
        got = curl.status(method, url, own, options, exchange)
        if got is None:
            got = others.status(method, url, own, options, exchange)
        return got

    @contextmanager
    def _noted(self, client: str, why: str, recorder: Recorder) -> Iterator[OtherExchange]:
        """Record the request that `client` ("libcurl" or "requests") makes in the block."""
        self._say(client, why)
        exchange = OtherExchange(recorder.names.number(f"{client}: {why}"))
        recorder.ask(exchange)
        try:
            yield exchange
        finally:
            recorder.end_exchange(exchange)

    def _say(self, client: str, why: str) -> None:
        if (client, why) in self._said:
            return
        with self._lock:
            if (client, why) in self._said:
                return
            self._said.add((client, why))
        LOG.info("requests are made by %s, which costs more CPU: %s", client, why)
