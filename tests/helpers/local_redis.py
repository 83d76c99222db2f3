"""The simulated Redis in the process of a test, and the store of a run there."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import redis

from osbench.common.protocol.store import Store
from world.simulated_redis import Pipeline, SimulatedRedis, play


class LocalRedis(SimulatedRedis):
    """In place of `redis.Redis`."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        """`now_ns`: the clock of the server, nanoseconds since 1970."""
        super().__init__(now_ns)
        #: The address of the server in messages.
        self.connection_pool = SimpleNamespace(
            connection_kwargs={"host": "memory"}, connection_class=redis.Connection
        )

    def pipeline(self, transaction: bool = True) -> Pipeline:
        """Commands that are sent together."""
        return Pipeline(lambda commands: play(self, commands))

    def close(self) -> None:
        """There is nothing to close."""


class LocalStore(Store):
    """The store of a run in such a Redis."""

    def __init__(self, run_id: str = "r") -> None:
        server: Any = LocalRedis()
        super().__init__(server, run_id)
        self.server: LocalRedis = server
