"""A proxy that does not answer is named instead of the cloud behind it."""

from __future__ import annotations

import pytest
from keystoneauth1 import exceptions, session

from osbench.common.deployment.record import Deployment
from osbench.coordinator.task.deployments.check import check
from osbench.edges.openstack.common.request_errors import refusal
from servers import free_port

#: Nobody serves there, and nobody is asked: it is behind the proxy.
CLOUD = "http://192.0.2.1:5000/v3"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> str:
    """A dead proxy of the environment; its address without user and password."""
    address = f"127.0.0.1:{free_port()}"
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://user:hunter2@{address}")
    monkeypatch.delenv("no_proxy", raising=False)
    return f"http://{address}"


def test_a_cloud_behind_a_dead_proxy_is_not_said_to_refuse(proxy: str) -> None:
    user = {"username": "ann", "password": "pw", "project_name": "ops"}
    record = Deployment.from_spec("cloud", {"openstack": {"auth_url": CLOUD, "admin": user}})
    assert record.admin
    with pytest.raises(exceptions.ClientException) as raised:
        session.Session().get(CLOUD, authenticated=False)

    error = refusal(record.admin, raised.value)
    (finding, *_) = check(record, 5.0)

    assert str(error).startswith(f"{CLOUD}: cannot connect to the proxy {proxy}: ")
    assert f"cannot connect to the proxy {proxy}: Connection refused" in finding.detail
