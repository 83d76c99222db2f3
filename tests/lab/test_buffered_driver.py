"""Services with the driver of deploy/osprofiler, beside services with OSProfiler's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from keystoneauth1.session import Session
from osprofiler import profiler

from bench.copies import Like, copies
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

BUFFERED = {"buffered": Like(profiler=True, buffered=True)}


def events(lab: Lab, session: Session, call: Callable[[Session], object]) -> list[str]:
    """What does not differ from request to request of the events of a call, in no order.

    The order of some statements differs between processes.
    """
    for _ in range(3):
        call(session)
    profiler.clean()
    trace = profiler.init(lab.hmac_key).get_base_id()
    try:
        call(session)
    finally:
        profiler.clean()
    key, client, before = f"osprofiler_opt:{trace}", lab.traces.client(), -1
    while before != client.llen(key) or before % 2 or not before:
        before = client.llen(key)
        time.sleep(0.5)
    return sorted(told(json.loads(raw)) for raw in client.lrange(key, 0, -1))


def told(event: dict[str, Any]) -> str:
    info = event["info"]
    statement = info.get("db", {}).get("statement")
    path = info.get("request", {}).get("path")
    return str((event["name"], event["project"], event["service"], statement, path, sorted(info)))


def test_keystone_writes_the_same_events_with_either_driver(keystone: Lab) -> None:
    def token(session: Session) -> None:
        session.invalidate()
        session.get_token()

    with copies(keystone, "keystone", BUFFERED) as ran:
        url = f"http://127.0.0.1:{ran['buffered'].port}/v3"
        stock, ours = (
            events(keystone, admin(keystone, place), token) for place in (keystone.auth_url, url)
        )

    assert len(stock) > 10
    assert ours == stock
    settings = (keystone.home("keystone-buffered") / "keystone.conf").read_text()
    assert "connection_string = osbench+redis://" in settings


@pytest.mark.parametrize(
    ("name", "kind", "path"),
    [("glance", "image", "/v2/images"), ("zaqar", "messaging", "/v2/queues")],
)
@pytest.mark.usefixtures("whole")
def test_other_services_do_so_too(lab: Lab, name: str, kind: str, path: str) -> None:
    def listed(endpoint: str) -> list[str]:
        headers = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c"}
        return events(lab, admin(lab), lambda one: one.get(endpoint + path, headers=headers))

    with copies(lab, name, BUFFERED) as ran:
        own = admin(lab).get_endpoint(service_type=kind).rstrip("/")
        stock, ours = (listed(place) for place in (own, f"http://127.0.0.1:{ran['buffered'].port}"))

    assert stock
    assert ours == stock
