"""Responses of a Prometheus, and of other programs at its address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.fake_prometheus import FakePrometheus
from helpers.json_server import serving
from osbench.common.errors import UsageError
from osbench.edges.traces.counters import prometheus
from osbench.edges.traces.counters.prometheus import (
    Prometheus,
    PrometheusAwayError,
    QueryRefusedError,
)


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with serving(FakePrometheus()) as running:
        yield running


def test_a_range_is_read_with_labels_and_finite_values(server: FakePrometheus) -> None:
    server.plant("cpu", lambda at: float("nan") if at >= 1002 else at / 1000, instance="db1:9100")

    (found,) = Prometheus(server.url).over("rate(cpu[3s])", 1000, 1003, 1)

    assert found.labels == {"instance": "db1:9100"}
    assert found.points == ((1000.0, 1.0), (1001.0, 1.001))


def test_the_clock_of_the_server_is_read(server: FakePrometheus) -> None:
    server.ahead_s = 500.0

    before = server.now_s()
    found = Prometheus(server.url).now_s()

    assert before <= found <= server.now_s()


def test_a_path_before_the_api_is_kept_and_headers_are_sent(server: FakePrometheus) -> None:
    asked = Prometheus(f"{server.url}/tenant/", "Authorization=Bearer%20abc,X-Scope-OrgID=7")

    with pytest.raises(PrometheusAwayError):
        asked.now_s()

    (one,) = server.asked
    assert one["path"] == "/tenant/api/v1/query"
    assert (one["authorization"], one["x-scope-orgid"]) == ("Bearer abc", "7")


def test_credentials_in_the_address_are_sent_and_not_shown(server: FakePrometheus) -> None:
    found = Prometheus(server.url.replace("http://", "http://anna:s3cret@"))

    found.now_s()

    assert server.asked[0]["authorization"].startswith("Basic ")
    assert "s3cret" not in found.shown


def test_a_query_that_is_wrong_does_not_stop_others(server: FakePrometheus) -> None:
    server.errors["bad("] = "1:4: parse error: unclosed left parenthesis"

    with pytest.raises(QueryRefusedError, match="HTTP 400 1:4: parse error"):
        Prometheus(server.url).over("bad(", 0, 1, 1)


def test_a_query_without_series_as_its_result_is_refused(server: FakePrometheus) -> None:
    with pytest.raises(QueryRefusedError, match="no series as its result"):
        Prometheus(server.url).at("time()")


def test_lacking_credentials_are_told_with_the_option(server: FakePrometheus) -> None:
    server.needed = ("authorization", "Bearer abc")

    with pytest.raises(PrometheusAwayError, match=r"HTTP 401 no token; look at \[metrics\] prom"):
        Prometheus(server.url).now_s()


@pytest.mark.parametrize(
    ("status", "text", "why"),
    [
        (200, "<html>a shop</html>", "the response is not from Prometheus's API"),
        (200, '{"hello": 1}', "the response is not from Prometheus's API"),
        (200, '{"status": "success", "data": {"result": []}}', "not from Prometheus's API"),
        (200, "[" * 100_000, "the response is not from Prometheus's API"),
        (302, "", "HTTP 302"),
        (404, "404 page not found", "HTTP 404 404 page not found"),
        (503, '{"status": "error", "error": "starting up"}', "HTTP 503 starting up"),
    ],
)
def test_other_programs_say_what_they_answered(
    server: FakePrometheus, status: int, text: str, why: str
) -> None:
    server.status, server.text = status, text

    with pytest.raises(PrometheusAwayError, match=why):
        Prometheus(server.url).now_s()


@pytest.mark.parametrize(
    "result",
    ['[{"metric": 1, "value": [1, "2"]}]', '[{"metric": {}, "value": [1]}]', "[7]", '["x"]'],
)
def test_malformed_series_are_not_taken(server: FakePrometheus, result: str) -> None:
    data = f'{{"resultType": "vector", "result": {result}}}'
    server.status, server.text = 200, f'{{"status": "success", "data": {data}}}'

    with pytest.raises(PrometheusAwayError, match="not from Prometheus's API"):
        Prometheus(server.url).at("up")


def test_an_answer_that_is_too_large_is_refused(
    server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_RESPONSE_BYTES", 1 << 20)
    server.status, server.text = 200, "x" * (2 << 20)

    with pytest.raises(QueryRefusedError, match="more than 1 MiB"):
        Prometheus(server.url).at("up")


def test_nobody_at_an_address_is_told_without_its_password() -> None:
    with pytest.raises(PrometheusAwayError, match="refused") as caught:
        Prometheus("http://anna:s3cret@127.0.0.1:9").now_s()

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://", "http://h:0", "http://h:x", "http://h/?a=1", "h:9090"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"not an address of Prometheus.*; write http://HOST"):
        Prometheus(url)


def test_headers_of_another_form_are_refused() -> None:
    with pytest.raises(UsageError, match=r"\[metrics\] prometheus_headers must be name=value"):
        Prometheus("http://h:9090", "Authorization")
