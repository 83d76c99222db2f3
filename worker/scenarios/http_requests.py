"""Scenarios that make an HTTP request and check the status of the response."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.common.network.answer_bound import BOUND_KEY, USUAL
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario, configure
from osbench.worker.http.addresses import shown
from osbench.worker.http.deadlines import request_limit_s
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.user.expectations import UnexpectedStatus
from osbench.worker.scenarios.http_arguments import request_problems


class HttpRequests(Scenario):
    """Rally's `HttpRequests` scenarios, as coroutines where virtual users are many."""

    # with as many or fewer, threads have the higher rate (docs/performance.md)
    THREADS_UP_TO = 2

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Create the clients that this process's virtual users share."""
        of_run = [f"X-Osbench-Run: {context['run']}"]
        context["http"] = HttpClients(of_run, context.get(BOUND_KEY, USUAL))

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Wrong URLs, headers and other arguments of requests."""
        if method == "check_request":
            return list(request_problems(args))
        requests = args.get("requests", ())
        found = [] if requests or "requests" not in args else ["requests is empty"]
        for position, request in enumerate(requests if isinstance(requests, list) else ()):
            where = f"requests[{position}]"
            if isinstance(request, Mapping):
                missing = [name for name in ("url", "method") if name not in request]
                found += [f"{name} of {where} is missing" for name in missing]
                found += request_problems(request, f"{where}.")
            else:
                found.append(f"{where} must be an object with url and method")
        return found

    @configure(name="HttpRequests.check_request")
    async def check_request(self, url: str, method: str, status_code: int, **kwargs: Any) -> None:
        """Make a request and compare the status of the response with the expected one.

        `kwargs` are keyword arguments of `requests.request`. The report says what part of the time
        name lookup, connecting, TLS and waiting for the answer took.
        """
        with ActionTimer(self, "requests.check_request"):
            context = self.context
            own = [f"X-Osbench-Iteration: {context['iteration']}"]
            if self._recorder.profiler is not None:
                own += map(": ".join, self.trace_headers().items())
            if context["timeout_s"]:
                kwargs["timeout"] = request_limit_s(context, kwargs.get("timeout"))
            http: HttpClients = context["http"]
            if self.in_loop:
                got = await http.status(method, url, own, kwargs, self._recorder)
            else:
                got = http.blocking_status(method, url, own, kwargs, self._recorder)
            if got != status_code:
                asked = f"{method.upper()} {shown(url)}"
                raise UnexpectedStatus(asked, got, str(status_code))

    @configure(name="HttpRequests.check_random_request")
    async def check_random_request(self, requests: list[dict[str, Any]], status_code: int) -> None:
        """Make a request picked at random and compare the status of the response.

        Each request has url, method and any keyword arguments of `requests.request`;
        `status_code` is expected for requests without one of their own.
        """
        request = dict(random.choice(requests))  # noqa: S311 - load, not secrets
        expected = request.pop("status_code", status_code)
        await self.check_request(request.pop("url"), request.pop("method"), expected, **request)
