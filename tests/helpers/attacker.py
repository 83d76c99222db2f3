"""Someone who reads and writes Redis and has no key: puts back old records, forges, deletes."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import redis

from servers.fragile_redis import FragileRedis
from servers.redis_proxy import Tape
from servers.resp import arguments

#: Escape sequences of a terminal, and bytes that are not UTF-8.
JUNK = b"\x1b[31mjunk\x1b]0;title\x07\xff\xfe\r\n"
#: The id behind which a stream takes no further entry.
LAST_ID = "18446744073709551615-18446744073709551615"
_PREFIX = b"osbench:"
_DELETES = frozenset((b"DEL", b"XDEL", b"XTRIM", b"EXPIRE"))


class Attacker:
    """Attacks on the Redis of runs; each does at once all that it can."""

    def __init__(self, server: FragileRedis, tape: Tape, seed: int) -> None:
        self._server = server
        self._tape = tape
        self._chance = random.Random(seed)

    def replay(self, count: int, *about: str) -> int:
        """Execute so many of the commands that were heard again, in any order.

        `about`: only commands that hold one of these texts, as a run's id. Returns how many.
        """
        heard = self._about(*about)
        chosen = self._chance.sample(heard, min(count, len(heard)))
        self._execute(chosen)
        return len(chosen)

    def replay_all(self, *about: str, within_s: float = 0.0) -> int:
        """Execute all that was heard again, in its order; spread over `within_s` seconds."""
        heard = self._about(*about)
        self._execute(heard, pause_s=within_s / max(1, len(heard)))
        return len(heard)

    def swap_specifications(self) -> bool:
        """Put the specifications of one run in the place of another's, and the other way round."""
        with self._redis() as client:
            keys = sorted(client.scan_iter(_PREFIX + b"run:*:specs"))
            if len(keys) < 2:
                return False
            one, two = self._chance.sample(keys, 2)
            found = [client.hgetall(key) for key in (two, one)]
            for key, values in zip((one, two), found, strict=True):
                if values:
                    client.hset(key, mapping=values)
            return True

    def close_streams(self) -> int:
        """Add junk with the last possible id to every stream: Redis takes no more entries."""
        done = 0
        with self._redis() as client:
            for key in client.scan_iter(_PREFIX + b"*", _type="stream"):
                with contextlib.suppress(redis.ResponseError):
                    client.xadd(key, {"x": JUNK}, id=LAST_ID)
                    done += 1
        return done

    def change_types(self, share: float) -> int:
        """Put lists or texts in the place of a share of the keys."""
        with self._redis() as client:
            keys = sorted(client.scan_iter(_PREFIX + b"*"))
            chosen = self._chance.sample(keys, round(share * len(keys)))
            for key in chosen:
                is_list = client.type(key) == b"list"
                client.delete(key)
                # its owner may have written it again meanwhile
                with contextlib.suppress(redis.ResponseError):
                    client.set(key, JUNK) if is_list else client.rpush(key, JUNK)
        return len(chosen)

    def overwrite(self, share: float) -> int:
        """Put junk into a share of the keys, each of the type that it has."""
        with self._redis() as client:
            keys = sorted(client.scan_iter(_PREFIX + b"*"))
            chosen = self._chance.sample(keys, round(share * len(keys)))
            for key in chosen:
                self._spoil(client, key)
        return len(chosen)

    def add_junk(self, *runs: str) -> None:
        """Names, marks, entries and messages with escape sequences and bytes of no text."""
        with self._redis() as client:
            client.sadd(_PREFIX + b"workers", JUNK, b"\xff" * 20)
            client.set(_PREFIX + b"worker:" + JUNK, JUNK, ex=30)
            for worker in self._workers(client):
                if self._chance.random() < 0.5:
                    client.set(_PREFIX + b"busy:" + worker, JUNK, ex=5)
                    client.set(_PREFIX + b"offer:" + worker, JUNK, ex=5)
                client.lpush(_PREFIX + b"osbench.w." + worker, JUNK)
            for run in runs:
                results = _PREFIX + f"run:{run}:results".encode()
                with contextlib.suppress(redis.ResponseError):
                    client.xadd(results, {JUNK: JUNK, b"": b""}, nomkstream=True)

    def reorder_results(self) -> int:
        """Delete the entries of every result stream and add them again in another order."""
        moved = 0
        with self._redis() as client:
            for key in client.scan_iter(_PREFIX + b"run:*:results", _type="stream"):
                entries = client.xrange(key)
                for identity, _ in entries:
                    client.xdel(key, identity)
                self._chance.shuffle(entries)
                for _, fields in entries:
                    with contextlib.suppress(redis.ResponseError):
                        client.xadd(key, fields)
                        moved += 1
        return moved

    def delete_results(self) -> int:
        """Delete an entry at random of every result stream."""
        done = 0
        with self._redis() as client:
            for key in client.scan_iter(_PREFIX + b"run:*:results", _type="stream"):
                entries = client.xrange(key)
                if entries:
                    done += int(client.xdel(key, self._chance.choice(entries)[0]))
        return done

    def _about(self, *about: str) -> list[bytes]:
        texts = [text.encode() for text in about]
        # what deletes would only undo the rest
        heard = [raw for raw in self._tape.heard() if arguments(raw)[0].upper() not in _DELETES]
        return [raw for raw in heard if any(text in raw for text in texts) or not texts]

    def _execute(self, commands: list[bytes], pause_s: float = 0.0) -> None:
        with self._redis() as client:
            for raw in commands:
                time.sleep(pause_s)
                with contextlib.suppress(redis.ResponseError):
                    client.execute_command(*arguments(raw))

    def _spoil(self, client: Any, key: bytes) -> None:
        acts: dict[bytes, Callable[[], object]] = {
            b"string": lambda: client.set(key, JUNK),
            b"set": lambda: client.sadd(key, JUNK),
            b"list": lambda: client.lpush(key, JUNK),
            b"hash": lambda: client.hset(key, mapping=dict.fromkeys(client.hkeys(key), JUNK)),
            b"stream": lambda: client.xadd(key, {JUNK: JUNK}),
        }
        with contextlib.suppress(redis.ResponseError, KeyError):
            acts[client.type(key)]()

    @staticmethod
    def _workers(client: Any) -> list[bytes]:
        before = _PREFIX + b"worker:"
        return [key.removeprefix(before) for key in sorted(client.scan_iter(before + b"*"))]

    @contextlib.contextmanager
    def _redis(self) -> Iterator[Any]:
        with contextlib.closing(self._server.client()) as client:
            yield client
