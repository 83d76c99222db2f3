"""Checks a deployment by requests: its cloud, services, profiler key and trace store."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import redis
import requests

from osbench.common.deployment.record import Deployment
from osbench.common.deployment.schema import DEFAULT_KEY, DEFAULT_KEY_WARNING
from osbench.common.errors import StoreError
from osbench.common.network.bounded_adapter import bounded_session
from osbench.common.network.causes import root_cause
from osbench.common.plugin.cloud_platform import Finding, cloud_of
from osbench.common.protocol import redis_client
from osbench.coordinator.task.deployments.at_once import at_once
from osbench.coordinator.task.deployments.span_probe import (
    NO_SPANS,
    connect_store,
    first_spans,
    signed_headers,
)

#: Timeout of each request, seconds.
REQUEST_S = 10.0
_ERRNO = re.compile(r"\[Errno -?\d+\] ")


def check(deployment: Deployment, timeout_s: float) -> Iterator[Finding]:
    """Yield findings on a deployment: logins, region, services, profiler key and trace store.

    Sends requests while it is iterated, for at most about `timeout_s` seconds; checks without a
    result by then have failed. Errors are findings, not raised.
    """
    until = time.monotonic() + timeout_s
    request_s = min(REQUEST_S, timeout_s)
    late = f"no result within {timeout_s:g} s (--timeout)"
    cloud = cloud_of(deployment)
    asked = cloud.check(deployment, request_s, until, late) if cloud is not None else None
    if asked is not None:
        yield from asked.logins()
    yield from _services(deployment, request_s, until, late)
    yield _key(deployment)
    (stored,) = at_once([partial(_store, deployment, request_s)], until)
    yield stored or Finding(subject="trace store", ok=False, detail=late)
    if asked is not None:
        yield from asked.services()


def plain_cause(error: Exception) -> str:
    """Return the message of an exception's root cause, without the number of an OSError."""
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
    store = connect_store(deployment.profiler_conn_str, timeout_s) if key and named else None
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
    base_id, headers = signed_headers(key) if key else ("", {})
    try:
        with (
            bounded_session() as client,
            client.get(
                address, headers=headers, timeout=timeout_s, allow_redirects=False, stream=True
            ) as response,
        ):
            said = f"responds with {response.status_code}"
    except requests.RequestException as error:
        return Finding(subject=subject, ok=False, detail=f"does not respond: {plain_cause(error)}")
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
