"""Sessions with the cloud under test: connections are kept, trace headers go to it only."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from uuid import UUID

import requests
from keystoneauth1 import access, discover, exceptions

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.network.origins import origin, secret_headers
from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.login import is_v3, login
from osbench.edges.openstack.common.login_gate import LoginGate
from osbench.edges.openstack.common.request_errors import refusal
from osbench.edges.openstack.common.thread_sessions import ThreadSessions, keep_connections
from osbench.edges.openstack.worker.fast_session import FastSession
from osbench.edges.openstack.worker.short_way import ShortWay
from osbench.edges.openstack.worker.transfer_client import TransferClient
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.user.request_base import REAUTHENTICATION, RETRY
from osbench.worker.tracing import profiling

#: Timeout of a request, seconds, if the workload sets none, as in Rally.
TIMEOUT_S = 180.0

#: Headers, in lower case, that are only sent to services of the deployment.
TRACE_HEADERS = ("x-trace-info", "x-trace-hmac", "traceparent")
_DEPLOYMENT_ONLY = frozenset((*TRACE_HEADERS, "x-openstack-request-id"))

#: Names of actions of additional requests, as are REAUTHENTICATION and RETRY.
REDIRECT, RENEWAL = "redirect", "token renewal"


_UNAUTHORIZED = 401

_origin = functools.lru_cache(maxsize=256)(origin)


class Sessions:
    """A deployment's sessions with its cloud in one process: one per thread, for all accounts.

    Raises DeploymentError if the deployment has no credential.
    """

    def __init__(
        self,
        deployment: Deployment,
        timeout_s: float | None = None,
        short_way: ShortWay | None = None,
        bound: ResponseBound = USUAL,
    ) -> None:
        """`timeout_s` bounds connecting and each wait for data; None is `TIMEOUT_S`.

        `short_way`: state for sending ordinary requests by osbench's client; with None `requests`
        sends all. `bound` limits responses.
        """
        admin = (deployment.admin,) if deployment.admin else ()
        self.credentials: tuple[Credential, ...] = deployment.users or admin
        if not self.credentials:
            raise DeploymentError(
                f"deployment {deployment.name} has neither users nor admin: add one of them to its "
                "record"
            )
        #: Origins of the services that receive trace headers.
        self.hosts: set[str] = set(deployment.hosts)
        #: Returns this thread's session, without credential; only for use by this thread.
        self.session = ThreadSessions(
            self.credentials[0],
            timeout_s or TIMEOUT_S,
            lambda: Transport(self.hosts, short_way, bound),
        )
        #: Sends and receives large bodies, for all accounts.
        self.transfers = TransferClient(
            timeout_s or TIMEOUT_S, short_way.opener if short_way is not None else None
        )
        #: Shared by all accounts, while Keystone is overloaded.
        self.gate = LoginGate()
        self._catalogued = False

    def credential(self, iteration: int) -> Credential:
        """Return the credential of an iteration (from 1): users in turn, else the admin's."""
        return self.credentials[(iteration - 1) % len(self.credentials)]

    def discover(self) -> None:
        """Query the versions of Keystone's API once for all threads, if its URL does not name one.

        The result is cached. Errors of Keystone are ignored: iterations report them.
        """
        first = self.credentials[0]
        if not is_v3(first.auth_url):
            # iterations report it if Keystone is down
            with contextlib.suppress(exceptions.ClientException):
                discover.get_discovery(self.session(), first.auth_url)

    def authenticate(self, credential: Credential) -> access.AccessInfo:
        """Log in to Keystone; return the granted access: a new token and the catalogue.

        The services of the first catalogue get trace headers from then on. Raises TimeoutError and
        ConnectionError if the network fails, else AuthenticationFailed.
        """
        try:
            granted: access.AccessInfo = login(credential.without_token()).get_access(
                self.session()
            )
        except exceptions.ClientException as error:
            raise refusal(credential, error) from error
        if not self._catalogued and granted.has_service_catalog():
            found = granted.service_catalog.get_endpoints_data().values()
            self._learn(origin(one.url) for several in found for one in several if one.url)
        return granted

    def warm(self, account: Account) -> None:
        """Log an account in, if it has no tokens yet.

        The services of the first catalogue get trace headers from then on. Raises TimeoutError and
        ConnectionError if the network fails, else AuthenticationFailed.
        """
        account.token(self.session())
        account.for_service("keystone").token(self.session())
        if not self._catalogued:
            self._learn(account.hosts(self.session()))

    def transport(self) -> Transport:
        """Return the transport of this thread's session, made if needed; only for this thread."""
        transport = self.session().session
        assert isinstance(transport, Transport)
        return transport

    def _learn(self, hosts: Iterable[str]) -> None:
        self.hosts.update(hosts)
        self._catalogued = True


class Call:
    """A request of a scenario, with all further HTTP requests that keystoneauth1 makes for it.

    Each further HTTP request is an action within the current action, so that it is counted and
    timed separately.
    """

    __slots__ = ("_begun", "_itself", "_refused", "_status", "scenario", "traced")

    def __init__(self, scenario: Scenario, method: str, url: str, *, traced: bool) -> None:
        self.scenario = scenario
        self._itself = (method, url)
        #: Whether services write spans for it; not for requests that only poll.
        self.traced = traced
        self._begun = False
        #: The last response to the request itself refused its token.
        self._refused = False
        self._status = 0

    def extra_action(self, method: str, url: str) -> str | None:
        """Return the action name of the next HTTP request; None for the request itself.

        Called before each HTTP request. Requests to other URLs are RENEWAL before the request
        itself, REAUTHENTICATION after its 401. Others are REDIRECT after a redirect, else RETRY.
        """
        sent = (method, url)
        if sent != self._itself and self._refused:
            # a login may be several requests, as to an identity provider
            return REAUTHENTICATION
        if sent != self._itself and not self._begun:
            return RENEWAL
        self._refused = False
        if not self._begun:
            self._begun = True
            return None
        return REDIRECT if self._status in REDIRECTS else RETRY

    def refuse(self) -> None:
        """Note that the request was sent, not by keystoneauth1, and its token refused."""
        self._begun = self._refused = True

    def answered(self, status: int, extra: str | None) -> None:
        """Note the status of a response, from which `extra_action` names the next request.

        `extra` is the name that `extra_action` returned for its request. Responses to logins are
        ignored.
        """
        if extra not in (REAUTHENTICATION, RENEWAL):
            self._status = status
            self._refused = status == _UNAUTHORIZED


class Transport(FastSession):
    """Sends each HTTP request of keystoneauth1 for one thread, redirects and retries included.

    During a `call`, additional requests are actions. Only services of the deployment get trace
    headers and secrets. No cookies are kept.
    """

    def __init__(
        self,
        hosts: set[str],
        short_way: ShortWay | None = None,
        bound: ResponseBound = USUAL,
    ) -> None:
        super().__init__(short_way)
        #: The current call of this thread's scenario; None outside of one.
        self.call: Call | None = None
        self._hosts = hosts
        # a cookie set by a load balancer or service must not affect the next iteration
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        keep_connections(self, bound)

    def request(  # type: ignore[override] # keystoneauth1 passes all else by keyword
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> requests.Response:
        call = self.call
        if call is None:
            return super().request(method, url, headers=self.sent_headers(url, headers), **options)
        extra = call.extra_action(method, url)
        if extra is None:
            sent = self.sent_headers(url, headers, traced=call.traced)
            response = super().request(method, url, headers=sent, **options)
        else:
            with ActionTimer(call.scenario, extra):
                sent = self.sent_headers(url, headers, traced=call.traced)
                response = super().request(method, url, headers=sent, **options)
        call.answered(response.status_code, extra)
        return response

    def takes_secrets(self, home: str, url: str) -> bool:
        """Return whether a request to `url` may carry secrets: only to services of the deployment.

        `home` is ignored.
        """
        return self._is_known(url)

    def _is_known(self, url: str) -> bool:
        # cached by the part up to the third slash, which is the same for all URLs of a host
        return _origin(url[: url.find("/", 8) + 1 or None]) in self._hosts

    def sent_headers(
        self, url: str, headers: Mapping[str, str] | None, *, traced: bool = True
    ) -> dict[str, str]:
        """Return a copy of headers for a URL: secrets and trace headers only for the deployment."""
        given = headers or {}
        if not self._is_known(url):
            secret = set(secret_headers(given))
            return {
                name: value
                for name, value in given.items()
                if name.lower() not in _DEPLOYMENT_ONLY and name not in secret
            }
        sent = {name: value for name, value in given.items() if name.lower() not in TRACE_HEADERS}
        if not traced:
            return sent
        trace = profiling.trace_headers()
        if "traceparent" in trace:
            # services log it, so that an iteration can be found in logs by its trace id
            sent["X-Openstack-Request-Id"] = f"req-{UUID(trace['traceparent'].split('-')[1])}"
        return sent | trace
