"""A user in a project of a cloud, with its token and the service addresses of its catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import access, exceptions
from keystoneauth1.session import Session

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.service_catalogue import Service
from osbench.common.errors import DeploymentError
from osbench.common.network.origins import origin
from osbench.edges.openstack.common.login import Login, login
from osbench.edges.openstack.common.login_gate import LoginGate
from osbench.edges.openstack.common.request_errors import refusal


class Account:
    """A user in a project of a cloud: its credential, token and service addresses. Thread-safe."""

    def __init__(
        self,
        credential: Credential,
        state: str = "",
        *,
        gate: LoginGate | None = None,
        system: Credential | None = None,
    ) -> None:
        """Create the login plug-in of the credential; no request is sent.

        `state`: a token from `login.state_of`, or "". `gate`: shared by the accounts of a process.
        `system`: another credential for requests to Keystone, or None. Raises DeploymentError as
        `login.login` does.
        """
        self.credential = credential
        self.login: Login = login(credential, gate)
        self._system = Account(system, gate=gate) if system is not None else None
        if state:
            self.login.set_auth_state(state)
        #: Cached base addresses by type and version.
        self._addresses: dict[tuple[Any, ...], str] = {}

    @property
    def name(self) -> str:
        """Return the user and its project in words, such as "user 'alice' of project 'shop'"."""
        return str(self.credential)

    def fresh(self) -> Account:
        """Return a new account of the same credentials without a token and with its own gate.

        Its next request logs in.
        """
        system = self._system.credential.without_token() if self._system else None
        return Account(self.credential.without_token(), system=system)

    def for_service(self, service: str) -> Account:
        """Return the account whose token requests to `service` carry.

        For Keystone it is the account of the `system` credential, if there is one; else this
        account.
        """
        is_keystone = service in ("keystone", "identity")
        return self._system if is_keystone and self._system is not None else self

    def token(self, session: Session) -> access.AccessInfo:
        """Return the token with its data; logs in if there is none, or a renewable one ends soon.

        Raises TimeoutError or ConnectionError if the network fails, else AuthenticationFailed.
        """
        try:
            granted: access.AccessInfo = self.login.get_access(session)
        except exceptions.ClientException as error:
            raise refusal(self.credential, error) from error
        return granted

    def renewed_token(self, session: Session, refused: str = "") -> access.AccessInfo:
        """Return a valid token other than `refused` ("": none was refused); logs in if necessary.

        Raises the errors of `token`.
        """
        try:
            granted: access.AccessInfo = self.login.renewed(session, refused)
        except exceptions.ClientException as error:
            raise refusal(self.credential, error) from error
        return granted

    def _granted(self, session: Session) -> access.AccessInfo:
        """Return the present token, even if it is expired; logs in if there is none.

        A request that needs a new token requests it itself, so that the time counts for it.
        """
        return self.login.auth_ref or self.token(session)

    def user_id(self, session: Session) -> str:
        """Return the id of the user; logs in if there is no token."""
        return str(self._granted(session).user_id)

    def project_id(self, session: Session) -> str:
        """Return the id of the project; logs in if there is no token."""
        return str(self._granted(session).project_id)

    def hosts(self, session: Session) -> set[str]:
        """Return the origins (scheme, host, port) of all services in the catalogue; may log in.

        Empty if there is no catalogue.
        """
        granted = self._granted(session)
        if not granted.has_service_catalog():
            return set()
        found = granted.service_catalog.get_endpoints_data().values()
        return {origin(one.url) for several in found for one in several if one.url}

    def regions(self, session: Session) -> list[str]:
        """Return the names of the regions in the catalogue, sorted; [] without a catalogue.

        Logs in if there is no token.
        """
        granted = self._granted(session)
        catalogue = granted.service_catalog.catalog if granted.has_service_catalog() else ()
        found = {
            endpoint.get("region") or endpoint.get("region_id")
            for service in catalogue
            for endpoint in service.get("endpoints", ())
        }
        return sorted(str(one) for one in found if one)

    def address(self, service: Service, session: Session) -> str:
        """Return the URL of a service with its API version, without a trailing slash; cached.

        An endpoint override of the credential is used before the catalogue, which may need a login.
        Raises DeploymentError if the catalogue does not have the service, and errors of `token`.
        """
        key = (service.types, service.version, service.wished)
        known = self._addresses.get(key)
        if known is None:
            url = self._url(service.types, session).rstrip("/")
            known = self._addresses[key] = versioned_url(url, service)
        return known

    def _url(self, types: tuple[str, ...], session: Session) -> str:
        for kind in types:
            if kind in self.credential.endpoint_overrides:
                return self.credential.endpoint_overrides[kind]
        granted = self._granted(session)
        catalogue = granted.service_catalog if granted.has_service_catalog() else None
        if catalogue is not None:
            for kind in types:
                found = catalogue.get_endpoint_data_list(
                    service_type=kind,
                    interface=self.credential.endpoint_type,
                    region_name=self.credential.region_name,
                )
                if found:
                    return str(found[0].url)
        there = sorted({one["type"] for one in catalogue.catalog}) if catalogue else []
        place = self.credential.endpoint_type + (
            f" in {self.credential.region_name}" if self.credential.region_name else ""
        )
        raise DeploymentError(
            f"the catalogue of {self.credential.auth_url} has no service of type {types[0]} "
            f"({place}); it has {', '.join(there) or 'none'}{self._other_regions(session)}; set "
            "region_name or endpoint_type of the deployment, or register the service"
        )

    def _other_regions(self, session: Session) -> str:
        """Return the end of an error message: the regions, if the wanted one is not among them."""
        wished = self.credential.region_name
        # none: a catalogue that was reduced to one region (`login.state_of`)
        there = self.regions(session)
        if wished is None or not there or wished in there:
            return ""
        return f"; there is no region {wished!r}, there are {', '.join(there)}"


def versioned_url(url: str, service: Service) -> str:
    """Return the URL of a service with its API version, `service.version`; "" adds none.

    A configured version (`wished`) replaces a version in `url`, else is added. A default version is
    added, unless `url` ends with a version.
    """
    if not service.version:
        return url
    if not service.wished:
        there = _is_version(url.rpartition("/")[2])
        return url if there else f"{url}/{service.version}"
    path = urlsplit(url).path
    parts = path.split("/")
    # a project's id may follow
    for place, part in enumerate(parts):
        if _is_version(part):
            parts[place] = service.version
            return url.removesuffix(path) + "/".join(parts)
    return f"{url}/{service.version}"


def _is_version(part: str) -> bool:
    return part[:1] == "v" and part[1:2].isdigit()


#: Returns this thread's session.
SessionOf = Callable[[], Session]


_HEADER = "X-Auth-Token"


class AccountToken:
    """The token of one account, shared by the virtual users of a process. Thread-safe."""

    def __init__(self, account: Account, session: SessionOf) -> None:
        self._account, self._session = account, session

    def headers(self) -> Mapping[str, str]:
        """Return the token, even an expired one, as header X-Auth-Token; logs in without a token.

        Raises TimeoutError, ConnectionError, AuthenticationFailed.
        """
        # not Account.token, which renews a token two minutes before its end
        granted = self._account.login.auth_ref or self._account.token(self._session())
        return {_HEADER: str(granted.auth_token)}

    def is_over(self) -> bool:
        """Return whether there is no token, or it has expired or will within a second."""
        return bool(self._account.login.is_over())

    def renew(self, refused: Mapping[str, str]) -> None:
        """Request a new token, unless the present one is valid and not the token in `refused`.

        `refused`: the headers of a request that was refused. Raises the errors of `headers`.
        """
        self._account.renewed_token(self._session(), refused.get(_HEADER, ""))
