"""Checks a deployment by requests: credentials, services, profiler key and trace store."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import redis
import requests

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.deployment.schema import DEFAULT_KEY, DEFAULT_KEY_WARNING
from osbench.common.errors import StoreError
from osbench.common.network.bounded_adapter import bounded_session
from osbench.common.network.causes import root_cause
from osbench.common.openstack.account import Account
from osbench.common.openstack.thread_sessions import ThreadSessions
from osbench.common.protocol import redis_client
from osbench.common.secrets.masking import mask_text
from osbench.coordinator.deployments.at_once import at_once
from osbench.coordinator.deployments.service_check import check_services
from osbench.coordinator.deployments.single_logins import token_end
from osbench.coordinator.deployments.span_probe import NO_SPANS, connected, first_spans, signed

#: Timeout of each request, seconds.
REQUEST_S = 10.0
_NO_CATALOGUE = (
    "no service in the catalogue: give the user a role in a project, or register endpoints in "
    "Keystone"
)
_ERRNO = re.compile(r"\[Errno -?\d+\] ")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check of a deployment, such as a login or the trace store, for the user."""

    #: What was checked: admin, users[0], profiler key, trace store.
    subject: str
    user: str = ""
    project: str = ""
    #: None if there was nothing to check.
    ok: bool | None
    detail: str
    #: It works, but the detail needs attention.
    warning: bool = False


def check(deployment: Deployment, timeout_s: float) -> Iterator[Finding]:
    """Check logins, region, services, profiler key and trace store of a deployment; yield the
    results.

    Sends requests for at most about `timeout_s` seconds; checks without a result by then have
    failed. Errors are results, not raised.
    """
    until = time.monotonic() + timeout_s
    request_s = min(REQUEST_S, timeout_s)
    late = f"no result within {timeout_s:g} s (--timeout)"
    subjects = deployment.credentials
    tries = [_Try(subject=name, credential=one) for name, one in subjects.items()]
    at_once([partial(_authenticate, one, request_s) for one in tries], until)
    for one in tries:
        yield one.finding or _of(one.subject, one.credential, ok=False, detail=late)
    able = [one for one in tries if one.finding and one.finding.ok]
    # a token with system scope has no catalogue of a project
    able.sort(key=lambda one: one.subject == "system_admin")
    if able:
        yield from _region(able[0])
    yield from _services(deployment, request_s, until, late)
    yield _key(deployment)
    (stored,) = at_once([partial(_store, deployment, request_s)], until)
    yield stored or Finding(subject="trace store", ok=False, detail=late)
    if able and deployment.platform == "openstack":
        for response in check_services(deployment, able[0].credential, request_s, until):
            yield Finding(
                subject=response.service,
                ok=response.ok,
                detail=response.detail or late,
                warning=response.warning,
            )


@dataclass(kw_only=True)
class _Try:
    """A login with one credential: its finding, and the regions that the catalogue has.

    Filled in by `_authenticate` in a thread; the finding is None until then.
    """

    subject: str
    #: With the token, once there is one: a login may not be repeatable.
    credential: Credential
    finding: Finding | None = None
    regions: list[str] = field(default_factory=list)


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
    """Yield a finding on the region: whether the region of the record exists in the catalogue.

    A warning if the record names none and there are several. Nothing if there is at most one, or
    the catalogue has no regions.
    """
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

    If a request failed, its cause replaces the text of `requests`, which names the connection pool.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    head, pool, _ = lines[0].partition(": HTTP")
    return mask_text(f"{head}: {_cause(error)}" if pool else lines[0])


def _cause(error: Exception) -> str:
    return _ERRNO.sub("", root_cause(error))


def _services(
    deployment: Deployment, timeout_s: float, until: float, late: str
) -> Iterator[Finding]:
    """Send a request, traced if there is a key, to each service that has an address in the record.

    Yields a finding for each. Spans are looked for only with a profiler key and a readable trace
    store. `timeout_s`: of each request; `until`: deadline, monotonic seconds; `late`: detail of a
    finding without a result.
    """
    key, named = deployment.profiler_hmac_key, deployment.services
    store = connected(deployment.profiler_conn_str, timeout_s) if key and named else None
    asked: list[Callable[[], Finding]] = [
        partial(_service, name, address, key, store, timeout_s) for name, address in named.items()
    ]
    for name, finding in zip(named, at_once(asked, until), strict=True):
        yield finding or Finding(subject=f"services.{name}", ok=False, detail=late)


def _service(name: str, address: str, key: str | None, store: Any, timeout_s: float) -> Finding:
    """Request the service's address; return a finding: whether it responds, with any status.

    A service may lack a page there. With a `store`, the finding is a warning if no spans arrive;
    with `key` the request is traced.
    """
    subject = f"services.{name}"
    base_id, headers = signed(key) if key else ("", {})
    try:
        with (
            bounded_session() as client,
            client.get(
                address, headers=headers, timeout=timeout_s, allow_redirects=False, stream=True
            ) as response,
        ):
            said = f"responds with {response.status_code}"
    except requests.RequestException as error:
        return Finding(subject=subject, ok=False, detail=f"does not respond: {_cause(error)}")
    if store is None:
        return Finding(subject=subject, ok=True, detail=said)
    seen_s = first_spans(store, {"": base_id}, {"": time.monotonic()}).get("")
    spans = NO_SPANS if seen_s is None else f"spans after {seen_s:.2f} s"
    return Finding(subject=subject, ok=True, detail=f"{said}; {spans}", warning=seen_s is None)


def _key(deployment: Deployment) -> Finding:
    if deployment.profiler_hmac_key == DEFAULT_KEY:
        return Finding(subject="profiler key", ok=True, warning=True, detail=DEFAULT_KEY_WARNING)
    if deployment.profiler_hmac_key:
        return Finding(subject="profiler key", ok=True, detail="set")
    return Finding(subject="profiler key", ok=None, detail="not set: iterations are not profiled")


def _store(deployment: Deployment, timeout_s: float) -> Finding:
    address = deployment.profiler_conn_str
    if not address:
        return Finding(subject="trace store", ok=None, detail="not set: no spans are written")
    if not address.startswith(("redis://", "rediss://")):
        scheme = address.partition(":")[0]
        return Finding(
            subject="trace store", ok=None, detail=f"{scheme}: not checked, only redis:// is"
        )
    try:
        client = redis_client.connect(address, timeout_s)
        try:
            client.ping()
        finally:
            client.close()
    except StoreError:
        return Finding(subject="trace store", ok=False, detail="is not an address of a Redis")
    except (redis.RedisError, OSError) as error:
        return Finding(subject="trace store", ok=False, detail=f"cannot be used: {error}")
    return Finding(subject="trace store", ok=True, detail="responds")
