"""Sends requests to the services of a cloud as a user."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from keystoneauth1 import exceptions

from osbench.common.deployment.service_catalogue import SERVICES, Service
from osbench.common.files.foreign_json import read_json
from osbench.edges.openstack.common.account import Account, SessionOf
from osbench.edges.openstack.common.api_version import ApiVersion, configured_service
from osbench.edges.openstack.common.request_errors import (
    RequestFailed,
    explanation,
    refusal,
    unreachable,
)

#: Identifies this process to Zaqar.
CLIENT_ID = str(uuid.uuid4())
#: Headers that services take in addition to OpenStack-API-Version, or without knowing it.
_OWN_HEADERS = {
    "ironic": "X-OpenStack-Ironic-API-Version",
    "manila": "X-OpenStack-Manila-API-Version",
}
#: Most bytes that are read of an error.
_ERROR_BYTES = 16 << 10


class Cloud:
    """Sends requests to services as one account. Cheap to create, even for a single iteration."""

    def __init__(
        self, account: Account, session: SessionOf, versions: Mapping[str, ApiVersion] | None = None
    ) -> None:
        self.account = account
        self.session = session
        self._versions = versions or {}

    @property
    def user_id(self) -> str:
        """Return the id of the user; logs in if there is no token."""
        return self.account.user_id(self.session())

    @property
    def project_id(self) -> str:
        """Return the id of the user's project; logs in if there is no token."""
        return self.account.project_id(self.session())

    def address(self, service: str) -> str:
        """Return the URL, with API version, of a service given by its name or a catalogue type.

        Raises DeploymentError if the catalogue does not have it, and login errors.
        """
        known = SERVICES.get(service) or Service(types=(service,))
        account = self.account.for_service(service)
        return account.address(
            configured_service(known, self._versions.get(service)), self.session()
        )

    def request(
        self,
        method: str,
        service: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        expected: tuple[int, ...] = (),
        microversion: str = "",
        **options: Any,
    ) -> requests.Response:
        """Send a request to a service and return the response; `options` are for keystoneauth1.

        `expected`: accepted statuses; () accepts all below 400, others raise RequestFailed.
        `microversion`: sent if the service has microversions and none is configured. Raises
        TimeoutError or ConnectionError without a response, AuthenticationFailed, DeploymentError.
        """
        url = f"{self.address(service)}/{path.removeprefix('/')}".rstrip("/")
        account = self.account.for_service(service)
        if account is not self.account:
            options["auth"] = account.login
        sent = {**self.headers(service, microversion), **(headers or {})}
        try:
            response = self.send(method, url, headers=sent, **options)
        except exceptions.HttpError as error:
            # only authenticating raises it here
            raise refusal(account.credential, error) from error
        except exceptions.ConnectionError as error:
            raise unreachable(
                _request_line(error) or f"{method} {_shown_url(url)}", error
            ) from error
        wanted = response.status_code in expected if expected else response.status_code < 400
        if not wanted:
            raise _failure(method, url, response)
        return response

    def send(self, method: str, url: str, **options: Any) -> requests.Response:
        """Send a request with this account's token and return the response, whatever its status.

        The option `auth` replaces the account's login. Raises exceptions of keystoneauth1.
        """
        given = {"auth": self.account.login, "authenticated": True, "raise_exc": False, **options}
        found: requests.Response = self.session().request(url, method, **given)
        return found

    def document(self, method: str, service: str, path: str, **options: Any) -> Any:
        """Send a request as `request` does; return the JSON value of the body, None if it is empty.

        Raises the errors of `request`, and RequestFailed if the body is not JSON.
        """
        response = self.request(method, service, path, **options)
        if not response.content:
            return None
        try:
            return read_json(response.content)
        except ValueError:
            raise RequestFailed(
                f"{method} {_shown_url(response.url)} (HTTP {response.status_code}): the response "
                "is not JSON; look at that server, or at a proxy between",
                status=response.status_code,
                request_id=_request_id(response),
            ) from None

    def microversion_of(self, service: str) -> tuple[int, ...]:
        """Return the configured microversion of a service as numbers; (2, 0) for none."""
        parts = self._microversion(service).split(".")
        return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else (2, 0)

    def _microversion(self, service: str) -> str:
        """Return the configured microversion of a service, such as "2.51"; "" for none."""
        wish = self._versions.get(service)
        wished = wish.version.removeprefix("v") if wish is not None else ""
        return wished if "." in wished else ""

    def headers(self, service: str, wanted: str = "") -> dict[str, str]:
        """Return the headers of every request to a service: Accept, Client-ID, the microversion.

        The latter two only if the service knows them. `wanted`: the microversion of the request, ""
        for none; a configured microversion replaces it.
        """
        headers = {"Accept": "application/json"}
        known = SERVICES.get(service)
        if known is None:
            return headers
        if known.client_id:
            headers["Client-ID"] = CLIENT_ID
        if known.microversion:
            version = self._microversion(service) or wanted or known.usual
            if version:
                headers["OpenStack-API-Version"] = f"{known.microversion} {version}"
            if version and service in _OWN_HEADERS:
                headers[_OWN_HEADERS[service]] = version
        return headers


def _request_line(error: BaseException) -> str:
    """Return "METHOD URL" of the request without a response, perhaps for a token; "" if unknown."""
    cause: BaseException | None = error
    while cause is not None:
        request = getattr(cause, "request", None)
        if isinstance(cause, requests.RequestException) and request is not None:
            return f"{request.method} {_shown_url(request.url)}"
        cause = cause.__cause__ or cause.__context__
    return ""


def _failure(method: str, url: str, response: requests.Response) -> RequestFailed:
    body = b""
    # the body may not be read yet, and of any length
    with contextlib.closing(response), contextlib.suppress(requests.RequestException):
        body = next(response.iter_content(_ERROR_BYTES), b"")
    status, identity = response.status_code, _request_id(response)
    return request_failure(method, url, status, response.reason, body, identity)


def request_failure(
    method: str, url: str, status: int, reason: str, body: bytes, request_id: str
) -> RequestFailed:
    """Return the exception for an unexpected response; `body` may have an explanation in JSON."""
    document: Any = ""
    with contextlib.suppress(ValueError):
        document = read_json(body)
    detail = explanation(document)
    shown = f"{status} {reason}" if reason else str(status)
    return RequestFailed(
        f"{method} {_shown_url(url)}: {shown}" + (f": {detail}" if detail else ""),
        status=status,
        request_id=request_id,
    )


def _request_id(response: requests.Response) -> str:
    return response.headers.get("X-Openstack-Request-Id", "")


def _shown_url(url: str) -> str:
    """Return the URL for messages, without user information, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
