"""A TCP proxy in front of Redis that cuts, delays, throttles, hangs, loses, repeats and reorders.

Bytes that Redis and its clients send have no meaning one by one, so what is lost, repeated or
reordered is a whole unit: a command that writes, or a transaction (MULTI to EXEC). The kinds:

    lose_replies   the unit is executed, then the connection is closed in place of the reply
    swallow        the client gets a reply, and nothing is executed: a write that a failover lost
    reorder        the client gets a reply at once; the unit is executed up to a second later
    repeat         the unit is executed, and up to two seconds later once more

Units of swallow and reorder are those whose reply the proxy can make up: SET, XADD, LPUSH and the
like. A connection that subscribes to a channel, or does not speak RESP, is passed on as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from servers.child import PATIENCE_S
from servers.resp import Frames, NotResp, arguments, command
from servers.streams import end_streams

#: Kinds of meddling, in the order in which they are tried.
KINDS = ("lose_replies", "swallow", "reorder", "repeat")

#: Replies to commands that are not executed, by name; XADD makes an id.
_MADE_UP = {
    **dict.fromkeys((b"SET", b"SETEX", b"PSETEX"), b"+OK\r\n"),
    **dict.fromkeys((b"LPUSH", b"RPUSH", b"SADD", b"HSET", b"EXPIRE", b"DEL", b"XDEL"), b":1\r\n"),
}
#: Commands that write and may be repeated; the reply is passed on.
_WRITES = frozenset((*_MADE_UP, b"XADD", b"HSETNX", b"ZADD", b"EVAL", b"EVALSHA", b"XTRIM"))
_SUBSCRIBES = frozenset((b"SUBSCRIBE", b"PSUBSCRIBE", b"MONITOR"))
#: Most commands that a tape holds; the oldest go first.
_TAPE = 100_000


class Tape:
    """What an eavesdropper hears: commands that write, as they went over the wire."""

    def __init__(self) -> None:
        self._heard: deque[bytes] = deque(maxlen=_TAPE)
        self._lock = threading.Lock()

    def hear(self, raw: bytes) -> None:
        """Keep a command."""
        with self._lock:
            self._heard.append(raw)

    def heard(self) -> list[bytes]:
        """All commands so far, oldest first."""
        with self._lock:
            return list(self._heard)


@dataclass(eq=False)
class _Pair:
    """A client's connection and the one to Redis that serves it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    #: Replies that are still to come: None is Redis's own, bytes are made up, False closes.
    replies: deque[bytes | bool | None] = field(default_factory=deque)
    #: Commands of a transaction that is not yet whole.
    transaction: list[bytes] = field(default_factory=list)
    is_opaque: bool = False

    def close(self) -> None:
        """Close both ends at once."""
        for end in (self.client, self.server):
            end.transport.abort()


class RedisProxy:
    """One address through which clients reach a Redis; an event loop in a thread."""

    def __init__(
        self, upstream: Callable[[], int], password: str | None, tape: Tape, seed: int = 0
    ) -> None:
        self._upstream = upstream
        self._password = password
        self._tape = tape
        self._random = random.Random(seed)
        self.port = 0
        #: What was done, by kind.
        self.counts: Counter[str] = Counter()
        #: Share of the units that each kind of meddling befalls.
        self.shares: dict[str, float] = dict.fromkeys(KINDS, 0.0)
        #: Seconds by which each piece of data is late, each way.
        self.delay_s = 0.0
        #: Most bytes a second and direction; 0 is any number.
        self.bytes_per_s = 0.0
        self._cut_until = 0.0
        self._hung_until = 0.0
        self._pairs: set[_Pair] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._later: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="redis-proxy")

    @property
    def url(self) -> str:
        """Where clients connect."""
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Listen; returns when connections are taken."""
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def stop(self) -> None:
        """Close the socket and every connection."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(PATIENCE_S)

    def cut(self, for_s: float) -> None:
        """Close all connections; those made within the time are closed, too."""
        self._cut_until = time.monotonic() + for_s
        self._loop.call_soon_threadsafe(self._close_all)

    def hang(self, for_s: float) -> None:
        """Pass nothing on for a while; connections stay."""
        self._hung_until = time.monotonic() + for_s

    def heal(self) -> None:
        """Pass everything on at once again."""
        self._cut_until = self._hung_until = self.delay_s = self.bytes_per_s = 0.0
        self.shares.update(dict.fromkeys(KINDS, 0.0))

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        await end_streams(server, self._writers)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = self._loop.create_task(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    def _close_all(self) -> None:
        for pair in self._pairs:
            pair.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            contextlib.suppress(OSError, asyncio.CancelledError),
            contextlib.closing(writer),
        ):
            if time.monotonic() < self._cut_until:
                writer.transport.abort()
                return
            try:
                made = await asyncio.open_connection("127.0.0.1", self._upstream())
            except OSError:
                writer.transport.abort()
                return
            pair = _Pair(client=writer, server=made[1])
            self._pairs.add(pair)
            try:
                await asyncio.wait(
                    [
                        asyncio.ensure_future(self._pump(pair, reader, self._commands)),
                        asyncio.ensure_future(self._pump(pair, made[0], self._replies)),
                    ],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                self._pairs.discard(pair)
                pair.close()

    async def _pump(
        self,
        pair: _Pair,
        reader: asyncio.StreamReader,
        passed: Callable[[_Pair, list[bytes]], None],
    ) -> None:
        frames = Frames()
        onward = pair.server if passed == self._commands else pair.client
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._wait(len(data))
                if not pair.is_opaque:
                    try:
                        passed(pair, frames.feed(data))
                        data = b""
                    except NotResp:
                        pair.is_opaque = True
                    if pair.is_opaque:
                        data = frames.rest()
                onward.write(data)
                await pair.server.drain()
                await pair.client.drain()

    async def _wait(self, size: int) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.bytes_per_s:
            await asyncio.sleep(size / self.bytes_per_s)
        while (left_s := self._hung_until - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, 0.05))

    def _commands(self, pair: _Pair, frames: list[bytes]) -> None:
        for at, raw in enumerate(frames):
            name = arguments(raw)[0].upper()
            if name in _SUBSCRIBES:
                pair.is_opaque = True
                pair.server.write(b"".join(frames[at:]))
                return
            if name in _WRITES:
                self._tape.hear(raw)
            if name == b"MULTI" or pair.transaction:
                pair.transaction.append(raw)
                if name in (b"EXEC", b"DISCARD"):
                    unit, pair.transaction = pair.transaction, []
                    self._unit(pair, unit)
            else:
                self._unit(pair, [raw])

    def _unit(self, pair: _Pair, unit: list[bytes]) -> None:
        inner = unit if len(unit) == 1 else unit[1:-1]
        names = [arguments(raw)[0].upper() for raw in inner]
        kind = self._meddles(names)
        made_up = [_reply_to(name) for name in names]
        if kind in ("swallow", "reorder") and None in made_up:
            kind = ""
        if kind:
            self.counts[kind] += 1
        if kind in ("swallow", "reorder"):
            known = [reply for reply in made_up if reply is not None]
            if len(unit) > 1:
                queued = b"+QUEUED\r\n" * len(known)
                known = [b"+OK\r\n" + queued + b"*%d\r\n" % len(known) + b"".join(known)]
            pair.replies.extend(known)
            self._made_up_due(pair)
            if kind == "reorder":
                self._execute_later(unit, within_s=1.0)
            return
        pair.replies.extend([None] * len(unit))
        pair.server.write(b"".join(unit))
        if kind == "lose_replies":
            pair.replies[-1] = False
        elif kind == "repeat":
            self._execute_later(unit, within_s=2.0)

    def _meddles(self, names: list[bytes]) -> str:
        if not names or not _WRITES.issuperset(names):
            return ""
        for kind in KINDS:
            if self.shares[kind] and self._random.random() < self.shares[kind]:
                return kind
        return ""

    def _replies(self, pair: _Pair, frames: list[bytes]) -> None:
        for raw in frames:
            if raw.startswith(b">"):  # a push of RESP3 is no reply
                pair.client.write(raw)
                continue
            due = pair.replies.popleft() if pair.replies else None
            if due is False:
                pair.close()
                return
            pair.client.write(raw)
            self._made_up_due(pair)

    @staticmethod
    def _made_up_due(pair: _Pair) -> None:
        while pair.replies and isinstance(pair.replies[0], bytes):
            pair.client.write(pair.replies[0])
            pair.replies.popleft()

    def _execute_later(self, unit: list[bytes], within_s: float) -> None:
        task = self._loop.create_task(self._execute(unit, self._random.uniform(0, within_s)))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _execute(self, unit: list[bytes], after_s: float) -> None:
        await asyncio.sleep(after_s)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._upstream())
            if self._password:
                writer.write(command(b"AUTH", self._password.encode()))
            writer.write(b"".join(unit) + command(b"QUIT"))
            await reader.read()
            writer.close()


def _reply_to(name: bytes) -> bytes | None:
    if name == b"XADD":
        made = b"%d-0" % int(time.time() * 1e3)
        return b"$%d\r\n%b\r\n" % (len(made), made)
    return _MADE_UP.get(name)


@contextlib.contextmanager
def redis_proxy(
    upstream: Callable[[], int], password: str | None, **options: Any
) -> Iterator[RedisProxy]:
    """A proxy on a free loopback port; `upstream` gives the port of the Redis behind it."""
    proxy = RedisProxy(upstream, password, options.pop("tape", None) or Tape(), **options)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
