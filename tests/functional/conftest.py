"""Fixtures of the functional tests: real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import browser
from helpers.live_browser import Browsed
from helpers.runs import Cluster, Site, site
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


@pytest.fixture(scope="module")
def fleet() -> Iterator[Cluster]:
    """A Redis and a worker that start once, for all runs of a module."""
    with redis_server(password="functional") as server, site() as here:
        found = Cluster(here, server)
        found.start_worker()
        found.await_idle(1)
        yield found


@pytest.fixture
def home(fleet: Cluster, tmp_path: Path) -> Path:
    """An empty home, whose runs use the worker of `fleet`."""
    fleet.lend(tmp_path)
    return tmp_path


@pytest.fixture
def guest(fleet: Cluster) -> Iterator[Site]:
    """An empty site, whose runs use the worker of `fleet`."""
    with site() as found:
        fleet.lend(found.home)
        yield found


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
