"""`deployment check` without a cloud: services, the profiler's key, the store."""

import re

import pytest

from helpers.fake_cloud import fake_cloud
from helpers.fake_keystone import fake_keystone
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.coordinator.task.deployments import span_probe
from osbench.coordinator.task.deployments.check import check
from servers import free_port, redis_server


@pytest.fixture
def auth_url():
    with fake_keystone() as server:
        yield server.auth_url


def found(spec):
    findings = check(Deployment.from_spec("cloud", spec), timeout_s=5.0)
    return {finding.subject: finding for finding in findings}


def test_services_are_tried(auth_url):
    findings = found(
        {"osbench": {"services": {"a": auth_url, "b": f"http://127.0.0.1:{free_port()}"}}}
    )

    assert findings["services.a"].detail == "responds with 200"
    assert findings["services.b"].ok is False
    assert findings["services.b"].detail == "does not respond: Connection refused"


def test_a_service_that_writes_no_span_is_named_with_what_to_look_at(monkeypatch):
    monkeypatch.setattr(span_probe, "SPANS_S", 0.3)
    with fake_cloud() as cloud, redis_server() as traces:
        client = cloud.traces = traces.client()
        cloud.trace_keys = {"v3": ["right"], "glance": ["wrong"]}

        findings = found(
            {
                "osbench": {
                    "services": {"a": f"{cloud.url}/v3", "b": f"{cloud.url}/glance"},
                    "profiler_hmac_key": "right",
                    "profiler_conn_str": traces.url,
                }
            }
        )

        left = client.dbsize()
        client.close()
    good, bad = findings["services.a"], findings["services.b"]
    assert re.fullmatch(r"responds with \d+; spans after \d+\.\d+ s", good.detail)
    assert (good.warning, bad.warning, bad.ok) == (False, True, True)
    assert "no spans: look at enabled, hmac_keys (the record's profiler_hmac_key" in bad.detail
    assert left == 0


def test_without_key_and_store_there_is_nothing_to_fail():
    findings = found({"osbench": {}})

    assert {subject: finding.ok for subject, finding in findings.items()} == {
        "profiler key": None,
        "trace store": None,
    }


def test_a_store_that_is_not_redis_is_not_tried():
    findings = found(
        {"osbench": {"profiler_hmac_key": "k", "profiler_conn_str": "mongodb://u:pw@h"}}
    )

    assert findings["profiler key"].ok
    assert findings["trace store"].ok is None
    assert findings["trace store"].detail == "mongodb: not checked, only redis:// is"


def test_a_trace_store_responds_refuses_or_is_unreachable():
    with redis_server(password="pw-store") as server:
        right = found({"osbench": {"profiler_conn_str": server.url}})
        wrong = found({"osbench": {"profiler_conn_str": server.url.replace("pw-s", "pw-x")}})
        server.kill()
        away = found({"osbench": {"profiler_conn_str": server.url}})

    assert right["trace store"].ok
    assert wrong["trace store"].ok is False
    assert away["trace store"].ok is False
    assert "pw-" not in str((right, wrong, away))


def test_a_store_with_a_malformed_address_makes_no_record():
    with pytest.raises(DeploymentError, match="a port that is not a number") as caught:
        found({"osbench": {"profiler_conn_str": "redis://:pw@host:port"}})

    assert "pw" not in str(caught.value)


def test_the_default_key_of_osprofiler_is_warned_of():
    findings = found({"osbench": {"profiler_hmac_key": "SECRET_KEY"}})

    assert findings["profiler key"].warning
    assert "OSProfiler's default key" in findings["profiler key"].detail
