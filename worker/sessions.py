"""Sessions with the cloud under test: kept connections, new tokens, trace headers kept at home."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
from keystoneauth1 import access, discover, exceptions, identity
from keystoneauth1.session import Session, TCPKeepAliveAdapter

import osbench
from osbench.common.deployment import Credential, Deployment, network_location
from osbench.common.errors import DeploymentError
from osbench.worker import profiling
from osbench.worker.causes import root_cause

#: Seconds a request may take where the workload sets no timeout, as in Rally.
TIMEOUT_S = 180.0

#: Headers, in small letters, that only services of the deployment may see.
TRACE_HEADERS = ("x-trace-info", "x-trace-hmac", "traceparent")

# different each time; would keep like failures apart
_REQUEST_ID = re.compile(r" \(Request-ID: [^)]*\)")


class AuthenticationFailed(Exception):
    """Keystone answered, but not with a token."""


class Sessions:
    """A deployment's sessions in one process: one a thread, whoever it authenticates.

    Raises DeploymentError where the deployment has no credential.
    """

    def __init__(self, deployment: Deployment, timeout_s: float | None = None) -> None:
        """`timeout_s` bounds connecting and each wait for data; None is `TIMEOUT_S`."""
        admin = (deployment.admin,) if deployment.admin else ()
        self.credentials: tuple[Credential, ...] = deployment.users or admin
        if not self.credentials:
            raise DeploymentError(f"deployment {deployment.name} has neither users nor admin")
        #: `host:port` of the services that may see trace headers.
        self.hosts: set[str] = set(deployment.hosts)
        self._timeout_s = timeout_s or TIMEOUT_S
        self._discovered: dict[str, Any] = {}
        self._catalogued = False
        self._local = threading.local()

    def credential(self, iteration: int) -> Credential:
        """The credential of an iteration (from 1): each in turn, users before the admin."""
        return self.credentials[(iteration - 1) % len(self.credentials)]

    def discover(self) -> None:
        """Ask Keystone for its versions once, for all threads, where iterations would have to."""
        first = self.credentials[0]
        if not _is_v3(first.auth_url):
            # a Keystone that is down is for the iterations to tell
            with contextlib.suppress(exceptions.ClientException):
                discover.get_discovery(self.session(), first.auth_url)

    def authenticate(self, credential: Credential) -> access.AccessInfo:
        """Get a new token from Keystone.

        Raises TimeoutError and ConnectionError where the network is at fault, else
        AuthenticationFailed.
        """
        kind = identity.V3Password if _is_v3(credential.auth_url) else identity.Password
        who = f"user {credential.username!r} of project {credential.project_name!r}"
        try:
            granted = kind(**credential.password_options()).get_access(self.session())
        except exceptions.ConnectTimeout as error:
            raise TimeoutError(f"{credential.auth_url}: {root_cause(error)}") from error
        except exceptions.ConnectionError as error:
            raise ConnectionError(f"{credential.auth_url}: {root_cause(error)}") from error
        except exceptions.HttpError as error:
            raise AuthenticationFailed(
                f"{credential.auth_url} gave {who} no token: {_REQUEST_ID.sub('', str(error))}"
            ) from error
        except exceptions.ClientException as error:
            raise AuthenticationFailed(
                f"{credential.auth_url} gave {who} no token: {root_cause(error)}"
            ) from error
        if not self._catalogued and granted.has_service_catalog():
            self._learn(granted)
        return granted

    def session(self) -> Session:
        """This thread's session, without credential; for use by this thread alone."""
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            tls = self.credentials[0]
            session = self._local.session = Session(
                session=_Transport(self.hosts),
                verify=tls.verify,
                cert=tls.cert,
                timeout=self._timeout_s,
                app_name="osbench",
                app_version=osbench.__version__,
                discovery_cache=self._discovered,
            )
        return session

    def _learn(self, granted: access.AccessInfo) -> None:
        """Let trace headers go to the services of the catalogue."""
        for services in granted.service_catalog.get_endpoints_data().values():
            self.hosts.update(network_location(e.url) for e in services if e.url)
        self._catalogued = True


class _Transport(requests.Session):
    """What keystoneauth1 sends every request by, each hop of a redirect and each retry too."""

    def __init__(self, hosts: set[str]) -> None:
        super().__init__()
        self._hosts = hosts
        # what a balancer or service sets for one iteration must not steer the next one
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        for scheme in ("http://", "https://"):
            self.mount(scheme, TCPKeepAliveAdapter())

    def request(  # type: ignore[override] # keystoneauth1 passes all else by keyword
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> requests.Response:
        sent = {n: v for n, v in (headers or {}).items() if n.lower() not in TRACE_HEADERS}
        if network_location(url) in self._hosts:
            sent |= profiling.trace_headers()
        return super().request(method, url, headers=sent, **options)


def _is_v3(auth_url: str) -> bool:
    return urlsplit(auth_url).path.rstrip("/").endswith("/v3")
