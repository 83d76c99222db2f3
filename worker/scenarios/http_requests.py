"""Scenarios that make an HTTP request and check the status of the response."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario, configure
from osbench.worker.http.addresses import shown_url
from osbench.worker.http.user.expectations import UnexpectedStatus, expected_statuses, fits
from osbench.worker.http.user.request_base import request_limit_s
from osbench.worker.scenarios.http_arguments import request_problems

if TYPE_CHECKING:
    from osbench.worker.http.http_clients import HttpClients

#: What Rally calls the action of a request.
ACTION = "requests.check_request"
#: Key of the context: names of the requests of which one is picked.
NAMES = "http_names"


class HttpRequests(Scenario):
    """Rally's `HttpRequests` scenarios: send a request and check the status of the response.

    Up to two virtual users of a process are threads; more are coroutines.
    """

    # with as many or fewer, threads have the higher rate (docs/performance.md)
    THREADS_UP_TO = 2
    WORKER_MODULES = ("osbench.worker.http.http_clients",)

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Create the workload's HTTP clients in this process, before the load, in `context`."""
        # the coordinator, which only checks arguments, needs no HTTP client
        from osbench.worker.http.http_clients import HttpClients  # noqa: PLC0415 - see above

        context["http"] = HttpClients.of_workload(context["run"], context)
        context[NAMES] = _names(context.get("args", {}).get("requests"))

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for each wrong URL, header or other argument; empty if none."""
        if method == "check_request":
            return list(request_problems(args))
        requests = args.get("requests", ())
        found = [] if requests or "requests" not in args else ["requests is empty"]
        for position, request in enumerate(requests if isinstance(requests, list) else ()):
            where = f"requests[{position}]"
            if isinstance(request, Mapping):
                found += [] if "url" in request else [f"url of {where} is missing"]
                found += request_problems(request, f"{where}.")
            else:
                found.append(f"{where} must be an object with a url")
        return found

    @configure(name="HttpRequests.check_request")
    async def check_request(
        self, url: str, method: str = "GET", status_code: int | None = None, **kwargs: Any
    ) -> None:
        """Send a request; the iteration fails unless the response has the expected status.

        Without `status_code` any status below 400 is expected. `kwargs` are keyword arguments of
        `requests.request`. The report shows the times of name lookup, connecting, TLS and waiting
        for the response.
        """
        with ActionTimer(self, ACTION):
            await self._check(url, method, status_code, kwargs)

    @configure(name="HttpRequests.check_random_request")
    async def check_random_request(
        self, requests: list[dict[str, Any]], status_code: int | None = None
    ) -> None:
        """Send a request picked at random; the iteration fails unless it gets the expected status.

        Each request has url and any other arguments of `HttpRequests.check_request`; `status_code`
        is expected for requests that set none. Each has a separate action, named by method and
        path, within Rally's.
        """
        at = random.randrange(len(requests))  # noqa: S311 - load, not secrets
        names = self.context[NAMES]
        request = {"method": "GET", "status_code": status_code, **requests[at]}
        url, method, wanted = request.pop("url"), request.pop("method"), request.pop("status_code")
        with ActionTimer(self, ACTION):
            # a list that comes from a data file may be any other
            if len(names) != len(requests):
                await self._check(url, method, wanted, request)
                return
            with ActionTimer(self, names[at]):
                await self._check(url, method, wanted, request)

    async def _check(
        self, url: str, method: str, status_code: int | None, options: dict[str, Any]
    ) -> None:
        context = self.context
        own = [f"X-Osbench-Iteration: {context['iteration']}"]
        if self._recorder.profiler is not None:
            own += map(": ".join, self.trace_headers().items())
        if context["timeout_s"]:
            options["timeout"] = request_limit_s(context, options.get("timeout"))
        http: HttpClients = context["http"]
        if self.in_loop:
            got = await http.status(method, url, own, options, self._recorder)
        else:
            got = http.blocking_status(method, url, own, options, self._recorder)
        if got != status_code and not fits(got, status_code):
            asked = f"{method.upper()} {shown_url(url)}"
            raise UnexpectedStatus(asked, got, expected_statuses(status_code))


def _names(requests: Any) -> list[str]:
    """Return the actions' names, METHOD PATH (default GET /), with placeholders, without query.

    Empty if `requests` is not a list.
    """
    if not isinstance(requests, list):
        return []
    return [
        f"{str(one.get('method', 'GET')).upper()} {urlsplit(str(one.get('url'))).path or '/'}"
        for one in requests
        if isinstance(one, Mapping)
    ]
