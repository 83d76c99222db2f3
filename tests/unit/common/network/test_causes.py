"""A proxy that does not answer is named instead of the service behind it."""

from __future__ import annotations

import pytest
import requests
from keystoneauth1 import exceptions, session

from osbench.common.deployment.record import Deployment
from osbench.common.network.causes import root_cause
from osbench.coordinator.task.deployments.check import check
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


@pytest.mark.parametrize("url", [CLOUD, CLOUD.replace("http:", "https:")])
def test_a_dead_proxy_is_named_without_its_password(proxy: str, url: str) -> None:
    with pytest.raises(requests.RequestException) as plain:
        requests.get(url, timeout=5)
    with pytest.raises(exceptions.ClientException) as cloud:
        session.Session().get(url, authenticated=False)

    for raised in (plain, cloud):
        assert root_cause(raised.value) == (
            f"cannot connect to the proxy {proxy}: [Errno 111] Connection refused"
        )


def test_a_service_behind_a_dead_proxy_is_not_said_to_be_dead(proxy: str) -> None:
    record = Deployment.from_spec("shop", {"osbench": {"services": {"shop": CLOUD}}})

    (finding, *_) = check(record, 5.0)

    assert finding.detail == (
        f"does not respond: cannot connect to the proxy {proxy}: Connection refused"
    )


def test_without_a_proxy_the_cause_is_that_of_the_service() -> None:
    with pytest.raises(requests.ConnectionError) as raised:
        requests.get(f"http://127.0.0.1:{free_port()}", timeout=5)

    assert root_cause(raised.value) == "[Errno 111] Connection refused"
