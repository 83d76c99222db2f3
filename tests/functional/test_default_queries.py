"""Default queries on real services, as their exporters describe them to a real Prometheus."""

from __future__ import annotations

import contextlib
import re
import socket
import time
import urllib.request
from collections.abc import Iterator

import amqp
import pytest

from helpers.json_server import serving
from osbench.edges.traces.counters.counter_query import WINDOW
from osbench.edges.traces.counters.default_queries import DEFAULT_QUERIES
from osbench.edges.traces.counters.prometheus import Prometheus
from servers import rabbitmq_server
from servers.child import PATIENCE_S
from servers.memcached import CONNECTIONS, Memcached, memcached
from servers.prometheus_server import prometheus

pytestmark = pytest.mark.functional

QUERIES = {one.name: one.query.replace(WINDOW, "1h") for one in DEFAULT_QUERIES}


def value(server: Prometheus, name: str) -> float | None:
    """The present value of a default query; None if it has none."""
    found = server.at(QUERIES[name])
    assert len(found) <= 1
    return found[0].points[0][1] if found and found[0].points else None


def await_value(server: Prometheus, name: str, expected: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := value(server, name)) != expected:
        assert time.monotonic() < deadline, f"{name}: {found}"
        time.sleep(0.05)


@contextlib.contextmanager
def exported(server: Memcached) -> Iterator[str]:
    with serving(server) as running:
        yield running.url.removeprefix("http://")


def test_the_queries_of_memcached_fit_its_exporter() -> None:
    with (
        memcached() as cache,
        exported(cache) as exporter,
        prometheus({"cache1:9150": exporter}) as running,
        contextlib.ExitStack() as clients,
    ):
        server = Prometheus(running.url)
        await_value(server, "memcached evictions", 0.0)
        # more than it has room for
        for number in range(100):
            cache.ask(f"set key{number} 0 0 100000\r\n{'x' * 100_000}\r\n", "STORED\r\n")
        for _ in range(3):
            assert "VALUE key99" in cache.ask("get key99\r\n")
        assert cache.ask("get nothing\r\n") == "END\r\n"
        for _ in range(40):
            clients.enter_context(socket.create_connection(("127.0.0.1", cache.port)))

        # beside one or two of the exporter
        await_value(server, "memcached connections", pytest.approx(41.5 / CONNECTIONS, abs=0.01))
        # rates of both begin with the same scrape
        await_value(server, "memcached hits", pytest.approx(0.75))
        evictions = value(server, "memcached evictions")
        assert evictions is not None
        assert evictions > 0
        assert int(cache.stats()["evictions"]) > 0


def test_the_queries_of_rabbitmq_fit_its_exporter() -> None:
    with (
        rabbitmq_server(metrics=True) as broker,
        prometheus({"mq1:15692": f"127.0.0.1:{broker.metrics_port}"}) as running,
        amqp.Connection(f"127.0.0.1:{broker.port}") as connection,
    ):
        server = Prometheus(running.url)
        channel = connection.channel()
        for queue in ("nova", "neutron"):
            channel.queue_declare(queue)
            for _ in range(3):
                channel.basic_publish(amqp.Message("x"), routing_key=queue)
        assert channel.basic_get("nova") is not None

        await_value(server, "RabbitMQ messages ready", 5.0)
        await_value(server, "RabbitMQ messages unacknowledged", 1.0)
        memory = value(server, "RabbitMQ memory")
        assert memory is not None
        assert 0.05 < memory < 1

        address = f"http://127.0.0.1:{broker.metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=30) as answer:
            page = answer.read().decode()
    named = {name for text in QUERIES.values() for name in re.findall(r"\brabbitmq_\w+", text)}
    assert len(named) == 4
    assert all(re.search(rf"^{name}[ {{]", page, re.M) for name in named)
