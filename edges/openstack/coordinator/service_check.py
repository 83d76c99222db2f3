"""Checks services of a catalogue: address, version, latency, clock, handling of trace keys."""

from __future__ import annotations

import contextlib
import email.utils
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests
from keystoneauth1 import exceptions

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.deployment.schema import DEFAULT_KEY
from osbench.common.deployment.service_catalogue import SERVICES
from osbench.common.errors import DeploymentError
from osbench.common.network.causes import root_cause
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import spaced
from osbench.coordinator.task.deployments.at_once import at_once
from osbench.coordinator.task.deployments.span_probe import (
    NO_SPANS,
    connect_store,
    first_spans,
    signed_headers,
)
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.api_version import ApiVersion
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import AuthenticationFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions

#: Clock offset above which a warning is given, seconds; the header Date has whole seconds.
CLOCK_S = 2.0
#: A cheap request that is traced, by service.
_PATHS = {
    "keystone": "",
    "glance": "images?limit=1",
    "zaqar": "queues?limit=1",
    "mistral": "workbooks?limit=1",
    "nova": "flavors?limit=1",
    "neutron": "networks?limit=1",
    "cinder": "types",
    "placement": "resource_providers?name=osbench",
    "barbican": "secrets?limit=1",
    "designate": "zones?limit=1",
    "ironic": "nodes?limit=1",
    "manila": "shares?limit=1",
}
#: Requests for a version, of which the fastest is the latency.
_TIMED = 2
_BY_TYPE = {kind: name for name, service in SERVICES.items() for kind in service.types}


@dataclass(frozen=True, kw_only=True)
class ServiceResponse:
    """The result of the check of one service of the catalogue; `ok` is False if it failed."""

    #: Type in the catalogue.
    service: str
    ok: bool | None
    detail: str
    warning: bool = False


@dataclass(slots=True)
class _ServiceCheck:
    """The check of one service in progress, filled in by `_ask` in a thread."""

    kind: str
    #: Base ids by key: the deployment's, and the default one.
    traces: dict[str, str] = field(default_factory=dict)
    #: Monotonic seconds of the responses, by key.
    answered_at: dict[str, float] = field(default_factory=dict)
    problem: str = ""
    facts: list[str] = field(default_factory=list)
    #: Status of an unsuccessful response, which may be the cause of missing spans.
    refused: int = 0
    #: Bounds of its clock minus ours, seconds.
    clock: tuple[float, float] = (-math.inf, math.inf)
    #: Seconds from its response to its first span, by key.
    seen_s: dict[str, float] = field(default_factory=dict)


def check_services(
    deployment: Deployment, credential: Credential, timeout_s: float, until: float
) -> Iterator[ServiceResponse]:
    """Check each service of the catalogue as the user of `credential`; yield the results.

    In order of service types; nothing if the login fails or is not done at `until`, monotonic
    seconds. `timeout_s` bounds each request. A check that is not done at `until` has no detail.
    """
    versions = {name: ApiVersion(**wish) for name, wish in deployment.api_versions.items()}
    cloud = Cloud(Account(credential), ThreadSessions(credential, timeout_s), versions)
    (kinds,) = at_once([partial(_kinds, cloud)], until)
    asked = [_ServiceCheck(kind) for kind in kinds or ()]
    keys = list(dict.fromkeys([deployment.profiler_hmac_key or DEFAULT_KEY, DEFAULT_KEY]))
    store = connect_store(deployment.profiler_conn_str, timeout_s)
    answered = at_once([partial(_ask, one, cloud, keys, store) for one in asked], until)
    for one, found in zip(asked, answered, strict=True):
        if found is None:
            yield ServiceResponse(service=one.kind, ok=False, detail="")
        else:
            yield _service_response(found, deployment.profiler_hmac_key, stored=store is not None)


def _kinds(cloud: Cloud) -> list[str]:
    try:
        granted = cloud.account.token(cloud.session())
    except (AuthenticationFailed, OSError):
        return []
    catalogue = granted.service_catalog.catalog if granted.has_service_catalog() else []
    return sorted({service["type"] for service in catalogue})


def _ask(one: _ServiceCheck, cloud: Cloud, keys: Sequence[str], store: Any) -> _ServiceCheck:
    """Fill in and return `one`; an error becomes its `problem` and ends the check.

    After version and clock a request is signed with each of `keys`; with a `store` it waits for
    their spans. Runs in a thread.
    """
    name = _BY_TYPE.get(one.kind, one.kind)
    try:
        one.facts.append(_version(cloud, name))
        url = f"{cloud.address(name)}/{_PATHS.get(name, '')}".rstrip("/")
        for key in keys:
            one.traces[key], headers = signed_headers(key)
            begin = time.time()
            response = cloud.send("GET", url, headers={**cloud.headers(name), **headers})
            _clock(one, response, begin, time.time())
            if response.status_code >= 500 or response.status_code == HTTPStatus.UNAUTHORIZED:
                token = " to a valid token" if response.status_code < 500 else ""
                one.problem = f"responds with {response.status_code}{token}"
                return one
            if response.status_code >= 400:
                one.refused = response.status_code
            one.answered_at[key] = time.monotonic()
    except DeploymentError as error:
        one.problem = str(error)
    except (exceptions.ClientException, requests.RequestException) as error:
        one.problem = f"does not respond: {root_cause(error)}"
    else:
        if store is not None:
            # of the service itself, not of one that it called
            project = _BY_TYPE.get(one.kind, "")
            one.seen_s = first_spans(
                store, one.traces, one.answered_at, lambda name: name.startswith(project)
            )
    return one


def _version(cloud: Cloud, name: str) -> str:
    """Return a text with a service's version, its address and the shorter latency of two requests.

    Raises DeploymentError if the catalogue lacks the service, ClientException or RequestException
    if it does not respond.
    """
    address = cloud.address(name)
    parts = urlsplit(address)
    path = parts.path.partition("/v")[0] if "/v" in parts.path else parts.path
    # the first request may have connected, and got a token
    url, lasted_s = f"{parts.scheme}://{parts.netloc}{path}/", math.inf
    for _ in range(_TIMED):
        begin = time.monotonic()
        response = cloud.send("GET", url, headers={})
        lasted_s = min(lasted_s, time.monotonic() - begin)
    found = ""
    with contextlib.suppress(ValueError):
        found = version_in(response.json())
    said = f"version {found}" if found else "version not reported"
    return f"{said} at {mask_url(address)}, responds in {spaced(lasted_s)}"


def version_in(document: Any) -> str:
    """Return the current version in a service's version document, such as "v2.1, up to 2.96".

    "" if it has none. The document's format differs by service.
    """
    if not isinstance(document, Mapping):
        return ""
    listed = document.get("versions", document.get("version", ()))
    if isinstance(listed, Mapping):
        listed = listed.get("values", [listed])
    if not isinstance(listed, list):
        return ""
    current = [
        one
        for one in listed
        if isinstance(one, Mapping)
        and str(one.get("status", "")).lower() in ("current", "stable", "supported")
    ]
    best = next((one for one in current if str(one["status"]).lower() == "current"), None)
    best = best or next(iter(current), None)
    if best is None:
        return ""
    highest = best.get("max_version") or best.get("version") or ""
    named = str(best.get("id", ""))
    return f"{named}, up to {highest}" if highest and f"v{highest}" != named else named


def _clock(one: _ServiceCheck, response: requests.Response, begin: float, end: float) -> None:
    if "Date" not in response.headers:
        return
    with contextlib.suppress(ValueError, TypeError):
        # the header was written between begin and end, and is truncated to whole seconds
        there = email.utils.parsedate_to_datetime(response.headers["Date"]).timestamp()
        low, high = one.clock
        one.clock = max(low, there - end), min(high, there + 1 - begin)


def _service_response(check: _ServiceCheck, key: str | None, *, stored: bool) -> ServiceResponse:
    if check.problem:
        return ServiceResponse(service=check.kind, ok=False, detail=check.problem)
    low, high = check.clock
    warning = low > CLOCK_S or high < -CLOCK_S
    facts = list(check.facts)
    if check.refused:
        facts.append(f"responds with {check.refused}")
        # for other services there may be no page at this address
        warning = warning or check.kind in _BY_TYPE
    if math.isfinite(low):
        facts.append(f"clock {(low + high) / 2:+.1f} s (to {abs(high - low) / 2:.1f} s)")
    if not stored:
        facts.append("spans not looked for: no trace store that can be read")
    else:
        if key and key in check.seen_s:
            facts.append(f"spans after {check.seen_s[key]:.2f} s")
        elif key:
            facts.append(NO_SPANS)
            warning = True
        if DEFAULT_KEY in check.seen_s:
            facts.append(f"accepts OSProfiler's default key {DEFAULT_KEY}")
            warning = True
    return ServiceResponse(service=check.kind, ok=True, detail="; ".join(facts), warning=warning)
