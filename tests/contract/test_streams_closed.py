"""Servers of tests close all their sockets, also of connections that are just being made."""

from __future__ import annotations

import contextlib
import gc
import socket
import warnings
from collections.abc import Callable, Iterator

import pytest

from servers import counting_server
from servers.redis_proxy import redis_proxy


@contextlib.contextmanager
def proxied() -> Iterator[int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as behind,
        redis_proxy(lambda: int(behind.getsockname()[1]), None) as proxy,
    ):
        yield proxy.port


@contextlib.contextmanager
def counted() -> Iterator[int]:
    with counting_server() as server:
        yield server.port


@pytest.mark.parametrize("server", [counted, proxied])
def test_a_server_that_ends_at_once_leaves_no_socket(
    server: Callable[[], contextlib.AbstractContextManager[int]],
) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(5):
            with contextlib.ExitStack() as clients, server() as port:
                for _ in range(5):
                    clients.enter_context(socket.create_connection(("127.0.0.1", port)))
        gc.collect()

    assert not [one for one in found if "127.0.0.1" in str(one.message)]
