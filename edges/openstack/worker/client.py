"""The client with which a scenario sends requests to the services of the cloud."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import requests

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario, pause
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.api_version import ApiVersion
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.worker.cloud_sessions import Call, Sessions

#: Statuses of a service that may ask for the same request later.
_OVERLOADED = frozenset({429, 503})
#: Longest pause before a retry, seconds.
LONGEST_PAUSE_S = 60.0


class Client(Cloud):
    """Sends the requests of one scenario object to a cloud, as one account.

    HTTP requests beyond the requested one (redirects, logins, retries) become actions of the
    scenario.
    """

    def __init__(
        self,
        scenario: Scenario,
        sessions: Sessions,
        account: Account,
        versions: Mapping[str, ApiVersion],
        retries: int = 0,
    ) -> None:
        """`account`: the user to act as. `versions`: API versions by service.

        `retries`: most repetitions of a request after a 429 or 503 with Retry-After.
        """
        super().__init__(account, sessions.session, versions)
        self._retries = retries
        self._scenario = scenario
        self._sessions = sessions

    def send(
        self, method: str, url: str, *, traced: bool = True, **options: Any
    ) -> requests.Response:
        """Send a request and return its response; `traced=False` keeps it out of the trace.

        After 429 or 503 with Retry-After it pauses as requested, but at most `LONGEST_PAUSE_S`, and
        sends again, at most `retries` times. Pause and repetition are one action, "retry after 429"
        or "retry after 503". The last response is returned whatever its status.
        """
        response = self._sent(method, url, traced=traced, **options)
        for _ in range(self._retries):
            pause_s = asked_pause_s(response.status_code, response.headers.get("Retry-After", ""))
            if pause_s is None:
                break
            with ActionTimer(self._scenario, f"retry after {response.status_code}"):
                pause(pause_s)
                response = self._sent(method, url, traced=traced, **options)
        return response

    def _sent(self, method: str, url: str, *, traced: bool, **options: Any) -> requests.Response:
        transport = self._sessions.transport()
        before, transport.call = transport.call, Call(self._scenario, method, url, traced=traced)
        try:
            return super().send(method, url, **options)
        finally:
            transport.call = before


def asked_pause_s(status: int, asked: str) -> float | None:
    """Return the pause before a retry that a response asks for, in seconds; None without.

    `asked`: its header Retry-After, or "". Only 429 and 503 with a valid one ask for a pause. It is
    at most `LONGEST_PAUSE_S`.
    """
    if status not in _OVERLOADED or not asked:
        return None
    try:
        wait_s = float(asked)
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return min(max(0.0, wait_s), LONGEST_PAUSE_S) if math.isfinite(wait_s) else None
