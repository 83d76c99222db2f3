"""Each service of the lab responds to authenticated requests, and traces those that are signed."""

from __future__ import annotations

import functools
import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from keystoneauth1 import session
from osprofiler import profiler

from servers.child import PATIENCE_S
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

#: Service type, path, and the spans that one GET of it leaves, as project/name.
REQUESTS = [
    ("identity", "/projects", {"keystone/wsgi", "keystone/db"}),
    ("placement", "/resource_providers", {"placement/wsgi"}),
    ("image", "/v2/images", {"glance/wsgi", "glance/db", "keystone/wsgi"}),
    ("messaging", "/v2/queues", {"Zaqar/wsgi", "Zaqar/sqlalchemy_queue_controller", "Zaqar/db"}),
]


#: The same of services that need RabbitMQ and MariaDB.
NOVA_REQUESTS = [
    ("compute", "/servers/detail", {"nova/wsgi", "nova/db"}),
    ("network", "/v2.0/ports", {"neutron/wsgi", "neutron/neutron.db"}),
]
MICROVERSION = {"OpenStack-API-Version": "compute 2.96"}


@functools.cache
def client(lab: Lab, kind: str) -> session.Session:
    """A session for services of a type; an older one's catalogue may not have it yet."""
    return admin(lab)


@contextmanager
def traced(lab: Lab) -> Iterator[str]:
    """Sign the requests of this thread; the id of their trace."""
    profiler.init(lab.hmac_key)
    try:
        yield profiler.get().get_base_id()
    finally:
        profiler.clean()


def ask(lab: Lab, method: str, kind: str, path: str, **more: Any) -> Any:
    """Send a request of the administrator to the service of a type."""
    headers = {"Client-ID": str(uuid.uuid4()), **(MICROVERSION if kind == "compute" else {})}
    return client(lab, kind).request(
        path,
        method,
        endpoint_filter={"service_type": kind, "interface": "public"},
        headers=headers,
        **more,
    )


def spans(lab: Lab, trace_id: str) -> set[str]:
    """What has been started in a trace, as project/name."""
    events = lab.traces.client().lrange(f"osprofiler_opt:{trace_id}", 0, -1)
    starts = [event for event in map(json.loads, events) if event["name"].endswith("-start")]
    return {f"{event['project']}/{event['name'].removesuffix('-start')}" for event in starts}


def wait_for_spans(
    lab: Lab, trace_id: str, expected: set[str], within_s: float = PATIENCE_S
) -> None:
    """Wait until a trace has these spans: some are written after the answer."""
    deadline = time.monotonic() + within_s
    while not expected <= spans(lab, trace_id):
        assert time.monotonic() < deadline, (expected, spans(lab, trace_id))
        time.sleep(0.1)


@pytest.mark.parametrize(("kind", "path", "expected"), REQUESTS)
def test_a_signed_request_leaves_the_services_spans(
    lab: Lab, kind: str, path: str, expected: set[str]
) -> None:
    with traced(lab) as trace_id:
        answer = ask(lab, "GET", kind, path)

    assert answer.status_code in {200, 204}
    wait_for_spans(lab, trace_id, expected)


@pytest.mark.parametrize(("kind", "path"), [request[:2] for request in REQUESTS])
def test_a_request_without_a_token_is_refused(lab: Lab, kind: str, path: str) -> None:
    endpoint = client(lab, kind).get_endpoint(service_type=kind, interface="public").rstrip("/")

    answer = client(lab, kind).get(
        endpoint + path,
        authenticated=False,
        raise_exc=False,
        headers={"Client-ID": str(uuid.uuid4())},
    )

    assert answer.status_code == 401


def test_a_message_goes_through_redis(lab: Lab) -> None:
    queue = f"/v2/queues/{uuid.uuid4().hex}"
    expected = {"Zaqar/redis_message_controller", "Zaqar/sqlalchemy_queue_controller"}

    with traced(lab) as trace_id:
        body = {"messages": [{"ttl": 300, "body": "hello"}]}
        ask(lab, "POST", "messaging", f"{queue}/messages", json=body)

    read = ask(lab, "GET", "messaging", f"{queue}/messages?echo=true").json()
    assert [message["body"] for message in read["messages"]] == ["hello"]
    wait_for_spans(lab, trace_id, expected)
    ask(lab, "DELETE", "messaging", queue)


def test_an_image_holds_what_was_put_in(lab: Lab) -> None:
    data = b"image" * 10_000

    body = {"name": "smoke", "disk_format": "raw", "container_format": "bare"}
    image = ask(lab, "POST", "image", "/v2/images", json=body).json()["id"]
    client(lab, "image").put(
        f"/v2/images/{image}/file",
        data=data,
        endpoint_filter={"service_type": "image", "interface": "public"},
        headers={"Content-Type": "application/octet-stream"},
    )

    assert ask(lab, "GET", "image", f"/v2/images/{image}/file").content == data
    ask(lab, "DELETE", "image", f"/v2/images/{image}")


WORKBOOK = """
version: '2.0'
name: {name}
workflows:
  greet:
    tasks:
      hello: {{action: std.echo output='hello', on-success: done}}
      done: {{action: std.noop}}
"""


def test_an_execution_leaves_spans_of_api_and_engine_in_each_trace(mistral: Lab) -> None:
    name = f"smoke-{uuid.uuid4().hex[:8]}"
    mistral_api = {"lab": mistral, "kind": "workflowv2"}
    ask(**mistral_api, method="POST", path="/workbooks", data=WORKBOOK.format(name=name))

    traces = []
    for _ in range(3):
        with traced(mistral) as trace_id:
            body = {"workflow_name": f"{name}.greet"}
            made = ask(**mistral_api, method="POST", path="/executions", json=body)
        execution = f"/executions/{made.json()['id']}"
        assert wait_for_state(mistral, execution) == "SUCCESS"
        ask(**mistral_api, method="DELETE", path=execution)
        traces.append(trace_id)

    # Not the first only: a thread that keeps its first trace is what Mistral is changed for.
    for trace_id in traces:
        wait_for_spans(mistral, trace_id, {"mistral/wsgi", "mistral/engine-start-workflow"})
    ask(**mistral_api, method="DELETE", path=f"/workbooks/{name}")


def wait_for_state(lab: Lab, execution: str, within_s: float = PATIENCE_S) -> str:
    """The state in which an execution ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        state = str(ask(lab, "GET", "workflowv2", execution).json()["state"])
        if state not in {"IDLE", "RUNNING"}:
            break
        time.sleep(0.2)
    return state


@pytest.mark.parametrize(("kind", "path", "expected"), NOVA_REQUESTS)
def test_a_signed_request_to_nova_or_neutron_leaves_spans(
    nova: Lab, kind: str, path: str, expected: set[str]
) -> None:
    with traced(nova) as trace_id:
        answer = ask(nova, "GET", kind, path)

    assert answer.status_code == 200
    wait_for_spans(nova, trace_id, expected)


def test_servers_are_booted_and_deleted_by_four_clients_at_a_time(nova: Lab) -> None:
    with ThreadPoolExecutor(4) as clients:
        states = list(clients.map(lambda _: boot_and_delete(nova), range(8)))

    assert states == ["ACTIVE"] * 8
    names = [server["name"] for server in ask(nova, "GET", "compute", "/servers").json()["servers"]]
    assert not [name for name in names if name.startswith("smoke-")]


def test_a_boot_is_traced_through_four_services(nova: Lab) -> None:
    with traced(nova) as trace_id:
        state = boot_and_delete(nova)

    assert state == "ACTIVE"
    through = {"nova/compute_api", "nova/neutron_api", "glance/wsgi", "neutron/wsgi"}
    wait_for_spans(nova, trace_id, through)


def boot_and_delete(lab: Lab, within_s: float = PATIENCE_S) -> str:
    """The state that a server without a network reached; it is gone then."""
    flavors = ask(lab, "GET", "compute", "/flavors").json()["flavors"]
    (image,) = ask(lab, "GET", "image", "/v2/images?name=lab-image").json()["images"]
    body = {
        "name": f"smoke-{uuid.uuid4().hex[:8]}",
        "imageRef": image["id"],
        "flavorRef": next(flavor["id"] for flavor in flavors if flavor["name"] == "m1.tiny"),
        "networks": "none",
    }
    server = ask(lab, "POST", "compute", "/servers", json={"server": body}).json()["server"]["id"]
    deadline = time.monotonic() + within_s
    state = "BUILD"
    while state == "BUILD" and time.monotonic() < deadline:
        state = ask(lab, "GET", "compute", f"/servers/{server}").json()["server"]["status"]
        time.sleep(0.2)
    ask(lab, "DELETE", "compute", f"/servers/{server}")
    while time.monotonic() < deadline:
        there = ask(lab, "GET", "compute", f"/servers/{server}", raise_exc=False)
        if there.status_code == 404:
            break
        time.sleep(0.2)
    return str(state)


def test_volumes_are_made_and_deleted_and_traced_to_the_backend(cinder: Lab) -> None:
    volumes = {"lab": cinder, "kind": "block-storage"}
    through = {"cinder/wsgi", "cinder/rpc", "cinder/driver"}

    with traced(cinder) as trace_id:
        body = {"volume": {"size": 1, "name": f"smoke-{uuid.uuid4().hex[:8]}"}}
        made = ask(**volumes, method="POST", path="/volumes", json=body).json()["volume"]
    volume = f"/volumes/{made['id']}"
    state = "creating"
    while state == "creating":
        state = ask(**volumes, method="GET", path=volume).json()["volume"]["status"]
        time.sleep(0.2)
    ask(**volumes, method="DELETE", path=volume)
    while ask(**volumes, method="GET", path=volume, raise_exc=False).status_code != 404:
        time.sleep(0.2)

    assert state == "available"
    wait_for_spans(cinder, trace_id, through)
