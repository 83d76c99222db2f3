"""Checks the cloud of a deployment by requests: logins, the region, services of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.cloud_platform import Finding
from osbench.common.secrets.masking import mask_text
from osbench.coordinator.task.deployments.at_once import at_once
from osbench.coordinator.task.deployments.check import plain_cause
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.thread_sessions import ThreadSessions
from osbench.edges.openstack.coordinator.service_check import check_services
from osbench.edges.openstack.coordinator.single_logins import token_end

_NO_CATALOGUE = (
    "no service in the catalogue: give the user a role in a project, or register endpoints in "
    "Keystone"
)


@dataclass(kw_only=True)
class _Try:
    """A login with one credential, filled in by `_authenticate` in a thread."""

    subject: str
    #: With the token, once there is one: a login may not be repeatable.
    credential: Credential
    finding: Finding | None = None
    regions: list[str] = field(default_factory=list)


class OpenStackCheck:
    """A `CloudCheck`: the check of one record, first its logins, then services with a token."""

    def __init__(self, deployment: Deployment, request_s: float, until: float, late: str) -> None:
        """Prepare the check; see `CloudPlatform.check`."""
        self._deployment = deployment
        self._request_s = request_s
        self._until = until
        self._late = late
        #: Logins that gave a token, by preference.
        self._able: list[_Try] = []

    def logins(self) -> Iterator[Finding]:
        """Log in with each credential of the record; yield a finding for each.

        After a successful login one on the region, if the record names one or the cloud has
        several. A login that has not ended at `until` has failed. Called once, before `services`.
        """
        subjects = self._deployment.credentials
        tries = [_Try(subject=name, credential=one) for name, one in subjects.items()]
        at_once([partial(_authenticate, one, self._request_s) for one in tries], self._until)
        for one in tries:
            yield one.finding or _of(one.subject, one.credential, ok=False, detail=self._late)
        self._able = [one for one in tries if one.finding and one.finding.ok]
        # a token with system scope has no catalogue of a project
        self._able.sort(key=lambda one: one.subject == "system_admin")
        if self._able:
            yield from _region(self._able[0])

    def services(self) -> Iterator[Finding]:
        """Check the services of the catalogue by the first token of `logins`, system_admin's last.

        Yields a finding for each; nothing if there was no token.
        """
        for one in self._able[:1]:
            for response in check_services(
                self._deployment, one.credential, self._request_s, self._until
            ):
                yield Finding(
                    subject=response.service,
                    ok=response.ok,
                    detail=response.detail or self._late,
                    warning=response.warning,
                )


def _authenticate(one: _Try, timeout_s: float) -> _Try:
    credential, client = one.credential, ThreadSessions(one.credential, timeout_s)()
    try:
        account = Account(credential)
        access = account.login.get_access(client)
        count = len(access.service_catalog.catalog) if access.has_service_catalog() else 0
        regions = account.regions(client)
        state = account.login.get_auth_state()
    except Exception as error:  # noqa: BLE001  any server may be at that address
        one.finding = _of(one.subject, credential, ok=False, detail=_reason(error))
        return one
    # a token with system scope has no catalogue
    if not count and one.subject != "system_admin":
        one.finding = _of(one.subject, credential, ok=False, detail=_NO_CATALOGUE)
        return one
    detail = f"{'1 service' if count == 1 else f'{count} services'} in the catalogue"
    if account.login.once:
        detail += f"; by {credential.auth_type}: {token_end(access.expires)}"
    one.regions, one.credential = regions, replace(credential, state=state or "")
    one.finding = _of(one.subject, credential, ok=True, detail=detail)
    return one


def _region(one: _Try) -> Iterator[Finding]:
    """Yield whether the record's region exists; a warning if it names none of several."""
    wished, there = one.credential.region_name, ", ".join(one.regions)
    if wished and one.regions:
        known = wished in one.regions
        said = f"{wished}, of {there}" if known else f"there is no {wished!r}; there are {there}"
        yield Finding(subject="region", ok=known, detail=said)
    elif len(one.regions) > 1:
        yield Finding(
            subject="region",
            ok=True,
            warning=True,
            detail=f"the record has no region_name: requests go to the first of {there} that the "
            "catalogue lists",
        )


def _of(subject: str, credential: Credential, *, ok: bool, detail: str) -> Finding:
    return Finding(
        subject=subject,
        user=credential.username or credential.subject,
        project=credential.project_name or credential.scope,
        ok=ok,
        detail=detail,
    )


def _reason(error: Exception) -> str:
    """Return the first line of an exception's message, secrets masked.

    The cause replaces the text of `requests`, which names the connection pool.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    head, pool, _ = lines[0].partition(": HTTP")
    return mask_text(f"{head}: {plain_cause(error)}" if pool else lines[0])
