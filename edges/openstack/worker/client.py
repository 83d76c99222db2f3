"""The client with which a scenario sends requests to the services of the cloud."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import requests

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario, pause
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.api_version import ApiVersion
from osbench.edges.openstack.common.cloud import Cloud, request_failure
from osbench.edges.openstack.common.object_body import ObjectBody
from osbench.edges.openstack.worker.cloud_sessions import Call, Sessions
from osbench.edges.openstack.worker.transfer_client import TransferAnswer, TransferRequest
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.other_clients.other_exchange import OtherExchange
from osbench.worker.http.user.request_base import RETRY
from osbench.worker.http.wire.prepared_request import AGENT

#: Statuses of a service that may ask for the same request later.
_OVERLOADED = frozenset({429, 503})
_UNAUTHORIZED, _ERRORS = 401, 400
_BLOCK = 1 << 20
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

    def transfer(
        self,
        method: str,
        service: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: ObjectBody | None = None,
    ) -> TransferAnswer:
        """Send a large body or download one, which is discarded; return the response, a good one.

        Times and bytes are in the record of the iteration. A refused token is renewed once; 429 and
        503 are handled as in `send`. Requests through a proxy, or that are redirected, are made by
        `requests` and not measured. Raises the errors of `request`.
        """
        url = f"{self.address(service)}/{path.removeprefix('/')}".rstrip("/")
        session, transport = self.session(), self._sessions.transport()
        site = transport.site_of(url, session.verify, session.cert)
        if isinstance(site, str):
            return self._transfer_by_requests(method, service, path, headers, body, site)
        sent = {"User-Agent": AGENT, "Accept-Encoding": "identity", **self.headers(service)}
        call = Call(self._scenario, method, url, traced=True)

        def exchange(token: str) -> TransferAnswer:
            given = transport.sent_headers(url, {**sent, **headers, "X-Auth-Token": token})
            request = TransferRequest(method, url, given, body, site.trust)
            return self._sessions.transfers.exchange(request, self._scenario._recorder)

        token = self._token(service, call)
        answer = exchange(token)
        if answer.status == _UNAUTHORIZED:
            call.refuse()
            token = self._token(service, call, refused=token)
            with ActionTimer(self._scenario, RETRY):
                answer = exchange(token)
        for _ in range(self._retries):
            pause_s = asked_pause_s(answer.status, answer.headers.get("retry-after", ""))
            if pause_s is None:
                break
            with ActionTimer(self._scenario, f"retry after {answer.status}"):
                pause(pause_s)
                answer = exchange(token)
        if answer.status in REDIRECTS:
            return self._transfer_by_requests(method, service, path, headers, body, "a redirect")
        if answer.status >= _ERRORS:
            identity = answer.headers.get("x-openstack-request-id", "")
            raise request_failure(method, url, answer.status, answer.reason, answer.body, identity)
        return answer

    def _token(self, service: str, call: Call, *, refused: str = "") -> str:
        account = self.account.for_service(service)
        with self._during(call):
            session = self.session()
            granted = account.renewed_token(session, refused) if refused else account.token(session)
        return str(granted.auth_token)

    def _transfer_by_requests(
        self,
        method: str,
        service: str,
        path: str,
        headers: Mapping[str, str],
        body: ObjectBody | None,
        why: str,
    ) -> TransferAnswer:
        recorder = self._scenario._recorder
        exchange = OtherExchange(recorder.names.number(f"requests: {why}"))
        recorder.ask(exchange)
        if body is not None:
            body.rewind()
        try:
            response = self.request(method, service, path, headers=headers, data=body, stream=True)
            with contextlib.closing(response):
                size = sum(map(len, response.iter_content(_BLOCK)))
        finally:
            recorder.end_exchange(exchange)
        found = {name.lower(): value for name, value in response.headers.items()}
        return TransferAnswer(response.status_code, response.reason, found, b"", size, 0.0)

    def _sent(self, method: str, url: str, *, traced: bool, **options: Any) -> requests.Response:
        with self._during(Call(self._scenario, method, url, traced=traced)):
            return super().send(method, url, **options)

    @contextlib.contextmanager
    def _during(self, call: Call) -> Iterator[None]:
        """Make further requests within the block actions of the scenario, as `call` names them."""
        transport = self._sessions.transport()
        before, transport.call = transport.call, call
        try:
            yield
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
