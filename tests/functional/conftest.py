"""Fixtures of the functional tests: real servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers import browser
from helpers.live_browser import Browsed
from servers import (
    CountingServer,
    RabbitmqServer,
    RedisServer,
    counting_server,
    rabbitmq_server,
    redis_server,
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    with browser.chromium() as found:
        yield found


@pytest.fixture
def tab(chromium: Any) -> Iterator[Browsed]:
    """A tab that watches a live view."""
    with Browsed.opened(chromium) as found:
        yield found


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
