"""Scenarios that make an HTTP request and check the status of the response."""

from __future__ import annotations

import random
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario, configure
from osbench.worker.http.addresses import shown
from osbench.worker.http.curl_client import CurlClient
from osbench.worker.http.deadlines import request_limit_s
from osbench.worker.http.requests_client import RequestsClient
from osbench.worker.tracing.profiling import trace_headers


class UnexpectedStatus(ValueError):
    """The status of the response is not the one that the task expects."""


class HttpRequests(Scenario):
    """Rally's `HttpRequests` scenarios."""

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Create the clients that this process's virtual users share."""
        of_run = [f"X-Osbench-Run: {context['run']}"]
        context["http"] = (CurlClient(of_run), RequestsClient(of_run))

    @configure(name="HttpRequests.check_request")
    def check_request(self, url: str, method: str, status_code: int, **kwargs: Any) -> None:
        """Make a request and compare the status of the response with the expected one.

        `kwargs` are keyword arguments of `requests.request`.
        """
        with ActionTimer(self, "requests.check_request"):
            context = self.context
            own = [f"X-Osbench-Iteration: {context['iteration']}"]
            if self._recorder.profiler is not None:
                own += map(": ".join, trace_headers().items())
            if context["timeout_s"]:
                kwargs["timeout"] = request_limit_s(context, kwargs.get("timeout"))
            curl, requests = context["http"]
            got = curl.status(method, url, own, kwargs)
            if got is None:
                got = requests.status(method, url, own, kwargs)
            if got != status_code:
                raise UnexpectedStatus(
                    f"{method.upper()} {shown(url)} answered {got}, expected {status_code}"
                )

    @configure(name="HttpRequests.check_random_request")
    def check_random_request(self, requests: list[dict[str, Any]], status_code: int) -> None:
        """Make a request picked at random and compare the status of the response.

        Each request has url, method and any keyword arguments of `requests.request`;
        `status_code` is expected for requests without one of their own.
        """
        request = dict(random.choice(requests))  # noqa: S311 - load, not secrets
        expected = request.pop("status_code", status_code)
        self.check_request(request.pop("url"), request.pop("method"), expected, **request)
