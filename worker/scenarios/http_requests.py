"""Scenarios that make an HTTP request and look at the status of its answer."""

from __future__ import annotations

import random
from typing import Any

from osbench.common.atomic import ActionTimer
from osbench.common.scenario import Scenario, configure
from osbench.worker.addresses import shown
from osbench.worker.curl_client import CurlClient
from osbench.worker.deadlines import request_limit_s
from osbench.worker.profiling import trace_headers
from osbench.worker.requests_client import RequestsClient


class UnexpectedStatus(ValueError):
    """The answer's status is not the one that the task expects."""


class HttpRequests(Scenario):
    """Rally's `HttpRequests` scenarios."""

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Make the clients that this process's virtual users share."""
        context["http"] = (CurlClient(), RequestsClient())

    @configure(name="HttpRequests.check_request")
    def check_request(self, url: str, method: str, status_code: int, **kwargs: Any) -> None:
        """Make a request and compare the status of the answer with the expected one.

        `kwargs` are any of the keyword arguments of `requests.request`.
        """
        self._check(url, method, status_code, kwargs)

    @configure(name="HttpRequests.check_random_request")
    def check_random_request(self, requests: list[dict[str, Any]], status_code: int) -> None:
        """Make a request picked at random and compare the status of the answer.

        Each request has url, method and any keyword argument of `requests.request`;
        `status_code` is expected of those that do not give their own.
        """
        request = dict(random.choice(requests))  # noqa: S311 - load, not secrets
        expected = request.pop("status_code", status_code)
        self._check(request.pop("url"), request.pop("method"), expected, request)

    def _check(self, url: str, method: str, expected: int, options: dict[str, Any]) -> None:
        with ActionTimer(self, "requests.check_request"):
            context = self.context
            number = str(context["iteration"])
            own = {"X-Osbench-Run": context["run"], "X-Osbench-Iteration": number}
            if self._recorder.profiler is not None:
                own |= trace_headers()
            options["timeout"] = request_limit_s(context, options.get("timeout"))
            curl, requests = context["http"]
            got = curl.status(method, url, own, options)
            if got is None:
                got = requests.status(method, url, own, options)
            if got != expected:
                raise UnexpectedStatus(
                    f"{method.upper()} {shown(url)} answered {got}, expected {expected}"
                )
