"""The endpoint from which Prometheus reads metrics."""

from __future__ import annotations

import contextlib
import select
import socket

import pytest
import requests
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics import parser

from helpers.engines import until
from osbench.common.errors import UsageError
from osbench.common.machine import metrics_endpoint as metrics_endpoint_module
from osbench.common.machine.metrics_endpoint import CONNECTIONS, metrics_endpoint
from servers.child import PATIENCE_S


def test_each_request_gets_what_is_known_then() -> None:
    values = iter((1.0, 2.0, 3.0))

    with metrics_endpoint("0", lambda: [GaugeMetricFamily("x", "An x.", next(values))]) as port:
        texts = [
            requests.get(
                f"http://127.0.0.1:{port}/metrics",
                headers={"Accept": "application/openmetrics-text; version=1.0.0"},
                timeout=5,
            ).text
            for _ in range(2)
        ]
        refused = requests.post(f"http://127.0.0.1:{port}/metrics", timeout=5)

    found = [next(iter(parser.text_string_to_metric_families(text))).samples for text in texts]
    assert [one[0].value for one in found] == [1.0, 2.0]
    assert refused.status_code == 405
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5)


def test_without_an_address_nothing_listens() -> None:
    with metrics_endpoint("", list) as port:
        assert port is None


@pytest.mark.parametrize("host", ["", "192.0.2.1:", "no-such-host.invalid:"])
def test_an_address_that_cannot_be_used_is_refused(host: str) -> None:
    with (
        metrics_endpoint("0", list) as port,
        pytest.raises(UsageError, match=f"cannot listen on {host}{port}"),
        metrics_endpoint(f"{host}{port}", list),
    ):
        pass


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nX-A: "])
def test_who_asks_gets_metrics_beside_many_who_do_not(sent: bytes) -> None:
    metrics = [GaugeMetricFamily("x", "An x.", 1.0)]
    with metrics_endpoint("0", lambda: metrics) as port, contextlib.ExitStack() as stack:
        slow = []
        for _ in range(3 * CONNECTIONS):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            # one that had to go already
            with contextlib.suppress(OSError):
                one.sendall(sent)
            slow.append(one)

        found = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S)

        assert "x 1.0" in found.text
        poll = select.poll()
        for one in slow:
            poll.register(one, select.POLLIN)
        until(lambda: len(poll.poll(0)) >= len(slow) - CONNECTIONS)


def test_a_request_has_to_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_endpoint_module, "WAIT_S", 0.05)
    with (
        metrics_endpoint("0", list) as port,
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as slow,
    ):
        slow.sendall(b"GET /metr")

        assert slow.recv(1) == b""


def test_it_listens_at_an_address_of_ipv6() -> None:
    with metrics_endpoint("[::1]:0", list) as port:
        assert requests.get(f"http://[::1]:{port}/metrics", timeout=PATIENCE_S).ok
