"""Fixtures of the functional tests: real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import (
    CountingServer,
    RabbitmqServer,
    RedisServer,
    counting_server,
    rabbitmq_server,
    redis_server,
)


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """An empty Redis on a loopback port, with a password and the policy that osbench wants."""
    with redis_server(password="functional") as server:
        yield server


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    """A web server that counts iterations."""
    with counting_server() as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitmqServer]:
    """One RabbitMQ for all tests."""
    with rabbitmq_server() as server:
        yield server
