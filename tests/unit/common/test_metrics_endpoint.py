"""The endpoint from which Prometheus reads metrics."""

from __future__ import annotations

import pytest
import requests
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics import parser

from osbench.common.errors import UsageError
from osbench.common.metrics_endpoint import metrics_endpoint


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
