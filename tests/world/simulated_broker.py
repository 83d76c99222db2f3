"""A broker in memory, or in the simulated Redis: it loses, repeats, delays and blocks messages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import kombu.exceptions
import redis
from amqp.exceptions import Blocked

from osbench.common.errors import OsbenchError
from osbench.common.protocol import broker, redis_keys
from osbench.common.protocol.amqp_connection import ANSWER_S
from osbench.common.protocol.wire import Wire
from world import present
from world.fibers import S
from world.simulated_redis import SimulatedRedis
from world.wire import Client, RedisServer

#: How late a message that is late may be, seconds.
LATE_S = (0.05, 3.0)
#: How long a consumer waits at a time, and before it connects again, seconds.
WAIT_S = 1.0


class SimulatedBroker:
    """Queues of worker processes, in a server of their own or in the Redis of the runs."""

    def __init__(self, server: RedisServer, *, apart: bool) -> None:
        scheduler = present.scheduler()
        self._runs = server
        self.apart = apart
        self.server = server
        if apart:
            self.server = RedisServer(scheduler)
        #: How likely a message is lost, comes twice, or late.
        self.lost = self.twice = self.late = 0.0
        #: The worker whose messages are all lost; "" if there is none.
        self.deaf = ""
        #: Until when publishers are blocked.
        self.blocked_until = 0
        self.messages = 0

    @property
    def redis(self) -> SimulatedRedis:
        """What holds the queues."""
        return self.server.redis

    def application(self) -> Application:
        """What a coordinator sends with, in place of a Celery application."""
        return Application(self)

    def consume(self, incarnation: str, receive: Callable[[object], None]) -> None:
        """What the consumer of a worker process does, for ever."""
        client = Client(self.server, 10.0)
        key = redis_keys.PREFIX + redis_keys.queue(incarnation)
        while True:
            try:
                data = client.blpop(key, WAIT_S)
            except (redis.ConnectionError, redis.TimeoutError):
                present.scheduler().wait(WAIT_S)
            except redis.ResponseError:
                # somebody has put something else into the place of the queue
                receive(b"")
                with contextlib.suppress(OsbenchError):
                    Wire(client).repair_queue(incarnation)  # type: ignore[arg-type] # stands in for it
            else:
                if data is not None:
                    receive(data)

    def deliver(self, queue: str, data: bytes) -> None:
        """Put a message into its queue, if nothing happens to it."""
        scheduler = present.scheduler()
        chance = scheduler.chance
        self.messages += 1
        if chance.random() < self.lost or queue == redis_keys.queue(self.deaf):
            return
        for _ in range(2 if chance.random() < self.twice else 1):
            if chance.random() < self.late:
                scheduler.after(chance.uniform(*LATE_S), lambda: self._put(queue, data))
            else:
                self._put(queue, data)

    def _put(self, queue: str, data: bytes) -> None:
        # into something of another type a broker writes nothing
        with contextlib.suppress(redis.ResponseError):
            self.redis.rpush(redis_keys.PREFIX + queue, data)


class Application:
    """What `Publisher` needs of Celery, of a connection and of a producer."""

    def __init__(self, of: SimulatedBroker) -> None:
        self._broker = of
        self._batch: list[tuple[str, bytes]] = []
        self.amqp = SimpleNamespace(Producer=lambda _: self)

    def connection_for_write(self, **_: Any) -> SimpleNamespace:
        """A connection that is there whenever the broker is."""
        return SimpleNamespace(ensure_connection=lambda **_: None, collect=lambda: None)

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Messages that are sent together, at the end."""
        self._batch = []
        yield
        self._send()

    def send_task(self, name: str, *, args: tuple[bytes], queue: Any, **_: Any) -> None:
        """Add a message to those that are sent together."""
        assert name == broker.TASK
        self._batch.append((queue.name, args[0]))

    def _send(self) -> None:
        scheduler, fiber = present.scheduler(), present.fiber()
        assert fiber is not None
        one = self._broker
        if one.blocked_until > scheduler.now:
            scheduler.wait(min(ANSWER_S, (one.blocked_until - scheduler.now) / S))
            if one.blocked_until > scheduler.now:
                raise Blocked("low on memory")
        # where it fails, some may have been sent
        sent = scheduler.chance.randint(0, len(self._batch)) if one.server.lost_reply else 0

        def deliver() -> None:
            one.redis.allot()
            for queue, data in self._batch:
                one.deliver(queue, data)

        try:
            one.server.trip(fiber.process, ANSWER_S, deliver)
        except redis.RedisError as error:
            for queue, data in self._batch[:sent] if one.server.hung_until else ():
                one.deliver(queue, data)
            raise kombu.exceptions.OperationalError(str(error)) from error
