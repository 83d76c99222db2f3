"""The way to the simulated Redis: it takes time, loses replies, and does not answer for a while."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import redis

from world import present
from world.fibers import EPOCH_S, Fiber, Process, S, Scheduler
from world.simulated_redis import Pipeline, SimulatedRedis, play

#: One way, nanoseconds: least and most.
TRIP_NS = (100_000, 400_000)


class RedisServer:
    """The server and the faults of the way to it. Its clock is the true one, and can be set."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        #: How far its clock was set.
        self.step_ns = 0
        self.redis = SimulatedRedis(self.time_ns)
        self.redis.on_added = self._added
        self.redis.is_full = lambda: self.full_until > scheduler.now
        #: Until when nothing is answered, and until when connections are refused.
        self.hung_until = 0
        self.down_until = 0
        #: Until when it is out of memory: it refuses what adds data.
        self.full_until = 0
        #: How likely a command takes effect and its reply is lost.
        self.lost_reply = 0.0
        self.commands = 0
        #: When somebody last took something out of it, or put something back.
        self.lost_keys_at = -1
        self._waiting: dict[bytes, list[tuple[Fiber, int]]] = {}

    def time_ns(self) -> int:
        """Its clock, nanoseconds since 1970."""
        return EPOCH_S * S + self._scheduler.now + self.step_ns

    def await_added(self, key: bytes, fiber: Fiber) -> None:
        """Have a fiber woken when something is added to a key."""
        self._waiting.setdefault(key, []).append((fiber, fiber.token))

    def _added(self, key: bytes) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting:
            self._scheduler.wake(waiting)

    def trip(self, process: Process, timeout_s: float, act: Callable[[], Any]) -> Any:
        """One request and its reply. Raises redis.ConnectionError, redis.TimeoutError."""
        scheduler = self._scheduler
        draw = scheduler.chance.random
        least, most = TRIP_NS
        asked = scheduler.now
        scheduler.wait((least + (most - least) * draw()) / S)
        if self.down_until > scheduler.now:
            raise redis.ConnectionError("Error 111 connecting to memory:6379. Connection refused.")
        away = max(self.hung_until, process.cut_off_until)
        if away > scheduler.now:
            left_ns = int(timeout_s * S) - (scheduler.now - asked)
            scheduler.wait(min(away - scheduler.now, left_ns) / S)
            if away - scheduler.now > 0:
                raise redis.TimeoutError("Timeout reading from socket")
        self.commands += 1
        found = act()
        if self.lost_reply and draw() < self.lost_reply:
            raise redis.ConnectionError("Connection closed by server.")
        scheduler.wait((least + (most - least) * draw()) / S)
        return found


class Client:
    """In place of `redis.Redis`: each command, and each pipeline, is a round trip."""

    def __init__(self, server: RedisServer, timeout_s: float) -> None:
        fiber = present.fiber()
        assert fiber is not None
        self._server = server
        self._process = fiber.process
        self._timeout_s = timeout_s
        #: The address of the server in messages.
        self.connection_pool = SimpleNamespace(
            connection_kwargs={"host": "memory"}, connection_class=redis.Connection
        )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        act = getattr(self._server.redis, name)
        return lambda *args, **named: self._trip(lambda: act(*args, **named))

    def _trip(self, act: Callable[[], Any]) -> Any:
        return self._server.trip(self._process, self._timeout_s, act)

    def xread(
        self, streams: dict[str, str], count: int | None = None, block: int | None = None
    ) -> Any:
        """XREAD, which waits for the first entry."""
        (key,) = streams
        return self._blocking(key, block, lambda: self._server.redis.xread(streams, count))

    def blpop(self, key: str, timeout_s: float) -> bytes | None:
        """BLPOP of one key; as a consumer of kombu takes messages."""
        found = self._blocking(key, int(timeout_s * 1000), lambda: self._server.redis.lpop(key))
        assert found is None or isinstance(found, bytes)
        return found

    def _blocking(self, key: str, block_ms: int | None, ask: Callable[[], Any]) -> Any:
        found = self._trip(ask)
        if found or not block_ms:
            return found
        scheduler, fiber = present.scheduler(), present.fiber()
        assert fiber is not None
        self._server.await_added(key.encode(), fiber)
        scheduler.wait(block_ms / 1000)
        return self._trip(ask)

    def pipeline(self, transaction: bool = True) -> Pipeline:
        """Commands that are sent together."""
        server = self._server.redis
        return Pipeline(lambda commands: self._trip(lambda: play(server, commands)))

    def close(self) -> None:
        """There is nothing to close."""
