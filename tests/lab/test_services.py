"""Each service of the lab answers authenticated requests, and traces those that are signed."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from osprofiler import profiler
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(900)]

#: Service type, path, and the spans that one GET of it leaves, as project/name.
REQUESTS = [
    ("identity", "/projects", {"keystone/wsgi", "keystone/db"}),
    ("placement", "/resource_providers", {"placement/wsgi"}),
    ("image", "/v2/images", {"glance/wsgi", "glance/db", "keystone/wsgi"}),
    ("messaging", "/v2/queues", {"Zaqar/wsgi", "Zaqar/sqlalchemy_queue_controller", "Zaqar/db"}),
]


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
    return admin(lab).request(
        path,
        method,
        endpoint_filter={"service_type": kind, "interface": "public"},
        headers={"Client-ID": str(uuid.uuid4())},
        **more,
    )


def spans(lab: Lab, trace_id: str) -> set[str]:
    """What has been started in a trace, as project/name."""
    events = lab.traces.client().lrange(f"osprofiler_opt:{trace_id}", 0, -1)
    starts = [event for event in map(json.loads, events) if event["name"].endswith("-start")]
    return {f"{event['project']}/{event['name'].removesuffix('-start')}" for event in starts}


def wait_for_spans(lab: Lab, trace_id: str, expected: set[str], within_s: float = 20.0) -> None:
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
    endpoint = admin(lab).get_endpoint(service_type=kind, interface="public").rstrip("/")

    answer = admin(lab).get(
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
    admin(lab).put(
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


def wait_for_state(lab: Lab, execution: str, within_s: float = 60.0) -> str:
    """The state in which an execution ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        state = str(ask(lab, "GET", "workflowv2", execution).json()["state"])
        if state not in {"IDLE", "RUNNING"}:
            break
        time.sleep(0.2)
    return state
