"""A Redis with an append-only file that can lose all that a real one can lose."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import redis

from servers.child import folder
from servers.redis_server import RedisServer

#: Where Redis 7 and Valkey keep the parts of the append-only file.
_FILES = "appendonlydir"


class FragileRedis(RedisServer):
    """Keeps its address and password; `url` and `port` follow where a replica takes over."""

    def __init__(self, where: Path, *, password: str | None = None) -> None:
        super().__init__(where, password=password, appendonly=True)
        self._copies = 0

    def copied(self) -> Path:
        """A copy of the append-only file as it is now, while the server writes it."""
        self._copies += 1
        to = self.folder / f"copy-{self._copies}"
        shutil.copytree(self.folder / _FILES, to)
        return to

    def begin_again(self, copy: Path | None = None) -> None:
        """Kill the server if it runs; start it with its file, or with a copy in its place."""
        self.kill()
        if copy is not None:
            shutil.rmtree(self.folder / _FILES)
            shutil.copytree(copy, self.folder / _FILES)
        self._wanted_port = self.port
        self.start()

    def begin_empty(self) -> None:
        """Kill the server if it runs; start it without any data."""
        self.kill()
        shutil.rmtree(self.folder / _FILES, ignore_errors=True)
        self.begin_again()

    def cut_off(self, size: int) -> None:
        """Cut the last bytes of the append-only file of a server that does not run."""
        (file,) = (self.folder / _FILES).glob("*.incr.aof")
        with file.open("r+b") as opened:
            opened.truncate(max(0, file.stat().st_size - size))

    def start_replica(self, copy: Path) -> FragileRedis:
        """A second server, elsewhere, with the data of a copy: a replica that lags behind."""
        where = self.folder / f"replica-{self._copies}"
        where.mkdir()
        shutil.copytree(copy, where / _FILES)
        replica = FragileRedis(where, password=self.password)
        replica.start()
        return replica

    def keys(self) -> list[bytes]:
        """Every key, sorted."""
        with contextlib.closing(self.client()) as client:
            return sorted(client.scan_iter(count=1000))

    def forget(self, chance: random.Random, share: float) -> list[bytes]:
        """Delete a share of the keys, at least one; returns those."""
        keys = self.keys()
        gone = chance.sample(keys, min(len(keys), max(1, round(share * len(keys)))))
        with contextlib.closing(self.client()) as client:
            for key in gone:
                client.delete(key)
        return gone

    def flush(self) -> None:
        """FLUSHALL."""
        with contextlib.closing(self.client()) as client:
            client.flushall()

    def fill(self) -> None:
        """From now on writes that need memory fail: out of memory."""
        with contextlib.closing(self.client()) as client:
            client.config_set("maxmemory", "1")

    def free(self) -> None:
        """Memory is there again."""
        with contextlib.closing(self.client()) as client:
            client.config_set("maxmemory", self._maxmemory)

    def is_answering(self) -> bool:
        """Whether it answers now."""
        with contextlib.closing(self.client()) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False


@contextlib.contextmanager
def fragile_redis(password: str | None = None) -> Iterator[FragileRedis]:
    """A server of this kind on a free loopback port."""
    with folder() as where:
        server = FragileRedis(where, password=password)
        try:
            server.start()
            yield server
        finally:
            server.kill()
