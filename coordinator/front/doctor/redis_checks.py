"""Checks the shared Redis and the workers whose heartbeats are in it."""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import redis
from oslo_config import cfg

from osbench import __version__
from osbench.common.config.certificates import shown_url
from osbench.common.errors import OsbenchError
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client, check, connect, translating_errors
from osbench.coordinator.formatting import count, duration
from osbench.coordinator.front.doctor.diagnosis import ERROR, OK, WARNING, Diagnosis
from osbench.coordinator.front.doctor.host_checks import DAY_S, RENEW, SOON_DAYS
from osbench.coordinator.load.fleet.heartbeats import OTHER_VERSION, HeartbeatReader

#: A server that replies later makes starts and ends of loads late, seconds.
SLOW_S = 0.1
#: Clocks may differ; so far apart something is wrong, seconds.
APART_S = 60.0
#: `maxmemory` below it may not hold what waits while a coordinator is slow, bytes.
LEAST_MEMORY = 256 << 20
#: With fewer connections left, some workers of a usual run would be refused.
FEW_CONNECTIONS = 100


def look_at_redis(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    """Yield the diagnoses of the configured Redis; if a request fails, an error is the last one.

    Writes and deletes scratch keys. If none is configured, yields an OK diagnosis: runs are in
    local mode. Errors of the server are diagnoses and are not raised.
    """
    url = conf.messaging.redis_url
    if not url:
        yield Diagnosis(
            about="Redis",
            state=OK,
            detail="none: runs are in local mode, with a private Redis and workers",
        )
        return
    try:
        client = connect(url, conf.messaging.redis_timeout_s)
        check(client, url)
        with translating_errors(url):
            yield from _server(client, url)
            yield from _certificate(client, url)
            yield from _writes(client)
            yield from _rights(client)
    except OsbenchError as error:
        yield Diagnosis(about="Redis", state=ERROR, detail=str(error))


def _server(client: Client, url: str) -> Iterator[Diagnosis]:
    begun = time.monotonic()
    seconds, micros = client.time()
    took_s = time.monotonic() - begun
    offset_s = seconds + micros / 1e6 - time.time() + took_s / 2
    server, memory = client.info("server"), client.info("memory")
    name = server.get("server_name", "redis")
    version = server.get("valkey_version") or server["redis_version"]
    detail = f"{shown_url(url)}, {name} {version}, responds in {duration(took_s)}, keeps all keys"
    if took_s > SLOW_S:
        remedy = "loads begin and end late, and more may be delayed: use a nearer Redis"
        yield Diagnosis(about="Redis", state=WARNING, detail=detail, remedy=remedy)
    else:
        yield Diagnosis(about="Redis", state=OK, detail=detail)
    most = int(memory.get("maxmemory", 0))
    if 0 < most < LEAST_MEMORY:
        yield Diagnosis(
            about="memory",
            state=WARNING,
            detail=f"maxmemory is {most >> 20} MiB",
            remedy="give Redis 768 MiB: results wait there while a coordinator is slow",
        )
    yield from _connections(client.info("clients"))
    detail = f"Redis is {duration(abs(offset_s))} {'ahead' if offset_s > 0 else 'behind'}"
    if abs(offset_s) > APART_S:
        remedy = "runs are right nevertheless, logs and traces are hard to compare: set the clocks"
        yield Diagnosis(about="clock", state=WARNING, detail=detail, remedy=remedy)
    else:
        yield Diagnosis(about="clock", state=OK, detail=detail)


def _connections(clients: Mapping[str, Any]) -> Iterator[Diagnosis]:
    most, used = int(clients.get("maxclients", 0)), int(clients.get("connected_clients", 0))
    free = most - used
    if most and free < FEW_CONNECTIONS:
        yield Diagnosis(
            about="connections",
            state=WARNING,
            detail=f"{used} of maxclients {most} are in use, {max(0, free)} are free",
            remedy="raise maxclients (`redis-cli config set maxclients 10000`) and the limit of "
            "open files of the server: a worker process takes about 6",
        )


def _certificate(client: Client, url: str) -> Iterator[Diagnosis]:
    if not url.startswith("rediss://"):
        local = url.startswith("unix://") or any(
            f"{mark}{host}" in url for mark in "@/" for host in ("127.0.0.1", "localhost", "[::1]")
        )
        if not local:
            yield Diagnosis(
                about="TLS",
                state=WARNING,
                detail="passwords and results cross the network in clear",
                remedy="use TLS on a network that you do not own (docs/operations.md#tls)",
            )
        return
    pool = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        sock = connection._sock
        ends = ssl.cert_time_to_seconds(sock.getpeercert()["notAfter"])
        left = (ends - time.time()) / DAY_S
        detail = (
            f"{sock.version()}, the certificate of Redis is valid for {count(round(left), 'day')}"
        )
    finally:
        pool.release(connection)
    if left < SOON_DAYS:
        yield Diagnosis(about="TLS", state=WARNING, detail=detail, remedy=RENEW)
    else:
        yield Diagnosis(about="TLS", state=OK, detail=detail)


#: Part of a server's error, the reason why it takes no writes, and advice.
_NO_WRITES = (
    (
        "read only replica",
        "it is a replica",
        "name its primary in [messaging] redis_url, or make it one: `redis-cli replicaof no one`",
    ),
    (
        "NOREPLICAS",
        "it has fewer replicas than min-replicas-to-write",
        "start its replicas, or `redis-cli config set min-replicas-to-write 0`",
    ),
    (
        "MISCONF",
        "its last snapshot failed",
        "see its log, make room on the disk of its `dir` and run `redis-cli bgsave`; or let it go "
        "without: `redis-cli config set stop-writes-on-bgsave-error no`",
    ),
    (
        "used memory > 'maxmemory'",
        "its memory is full",
        "raise its maxmemory (768 MiB is enough for osbench), or remove data of other programs",
    ),
)


def _writes(client: Client) -> Iterator[Diagnosis]:
    """Yield an error with the reason if Redis takes no writes; `_rights` reports missing rights."""
    scratch = f"{redis_keys.PREFIX}doctor:{secrets.token_hex(8)}"
    try:
        client.set(scratch, "x", ex=60)
    except redis.exceptions.NoPermissionError:
        return
    except redis.ResponseError as error:
        known = (why for why in _NO_WRITES if why[0] in str(error))
        _, why, remedy = next(known, ("", str(error), "see its log"))
        detail = f"Redis takes no writes: {why}"
        yield Diagnosis(about="Redis", state=ERROR, detail=detail, remedy=remedy)
    else:
        _is_allowed(lambda: client.delete(scratch))


def _rights(client: Client) -> Iterator[Diagnosis]:
    scratch = f"{redis_keys.PREFIX}doctor:{secrets.token_hex(8)}"
    keys = [f"{scratch}:{kind}" for kind in ("text", "hash", "set", "list", "stream", "count")]
    missing = [name for name, attempt in _commands(client, *keys) if not _is_allowed(attempt)]
    if not _is_allowed(lambda: client.delete(*keys)):
        missing.append("del")
    if missing:
        yield Diagnosis(
            about="rights",
            state=ERROR,
            detail=f"the user of Redis may not use {', '.join(missing)} with keys of osbench",
            remedy="give it "
            + " ".join(f"+{name}" for name in missing)
            + " and ~osbench:*, as deploy/redis/users.acl does",
        )
    else:
        yield Diagnosis(about="rights", state=OK, detail="all that a coordinator does is allowed")


def _commands(
    client: Client, text: str, table: str, members: str, queue: str, stream: str, number: str
) -> list[tuple[str, Callable[[], Any]]]:
    """Return the commands that a coordinator uses: (name in an ACL, function that tries it).

    The keys are scratch keys, each for one type of value.
    """
    return [
        ("set", lambda: client.set(text, "x", ex=60)),
        ("get", lambda: client.get(text)),
        ("getrange", lambda: client.getrange(text, 0, 1)),
        ("hset", lambda: client.hset(table, "field", "x")),
        ("hget", lambda: client.hget(table, "field")),
        ("hstrlen", lambda: client.hstrlen(table, "field")),
        ("incrby", lambda: client.incrby(number, 1)),
        ("sadd", lambda: client.sadd(members, "x")),
        ("sscan", lambda: client.sscan(members)),
        ("srem", lambda: client.srem(members, "x")),
        ("lpush", lambda: client.lpush(queue, "x")),
        ("llen", lambda: client.llen(queue)),
        ("xadd", lambda: client.xadd(stream, {"x": "x"})),
        ("xread", lambda: client.xread({stream: "0"})),
        ("xinfo|stream", lambda: client.xinfo_stream(stream)),
        ("xtrim", lambda: client.xtrim(stream, maxlen=1)),
        ("xdel", lambda: client.xdel(stream, "0-1")),
        ("script|load", lambda: client.script_load("return 1")),
        ("pexpire", lambda: client.pexpire(text, 60_000)),
        ("expire", lambda: client.expire(text, 60)),
    ]


def _is_allowed(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except redis.exceptions.NoPermissionError:
        return False
    except redis.ResponseError:
        pass  # its key was not written: that is reported for the writing command
    return True


def look_at_workers(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    """Yield the diagnoses of workers: foreign keys, other versions, capacity, clocks, threads.

    Capacity is always among them, the others only with faults. Nothing in local mode, or if Redis
    or the keys cannot be used: other checks report that.
    """
    url = conf.messaging.redis_url
    if not url:
        return
    try:
        signer = Signer(Keyring.load(conf.security.key_file))
        heartbeats = HeartbeatReader(connect(url, conf.messaging.redis_timeout_s), signer)
        present = heartbeats.present()
    except OsbenchError:
        return  # reported by the checks of keys and of Redis
    if heartbeats.unverified:
        yield Diagnosis(
            about="workers",
            state=ERROR,
            detail=f"{heartbeats.unverified} heartbeats are signed with other keys",
            remedy="copy the key file of this host to the hosts of those workers",
        )
    others = sorted({f"{one.host} ({one.version})" for one in present if _is_other(one.state)})
    if others:
        yield Diagnosis(
            about="workers",
            state=ERROR,
            detail=f"not of version {__version__}, and not used: {', '.join(others)}",
            remedy="install the same version there, and restart osbench-worker",
        )
    usable = [one for one in present if not _is_other(one.state)]
    yield _capacity(usable)
    for one in usable:
        yield from _look_at_worker(one)


def _capacity(usable: Sequence[Heartbeat]) -> Diagnosis:
    if not usable:
        return Diagnosis(
            about="workers", state=WARNING, detail="none", remedy="start osbench-worker on a host"
        )
    hosts = len({one.host for one in usable})
    users = sum(one.capacity for one in usable)
    return Diagnosis(
        about="workers",
        state=OK,
        detail=(
            f"{count(len(usable), 'process', 'processes')} on {count(hosts, 'host')}, "
            f"{count(users, 'virtual user')}"
        ),
    )


def _look_at_worker(one: Heartbeat) -> Iterator[Diagnosis]:
    if abs(one.offset_s) > APART_S:
        yield Diagnosis(
            about="clock",
            state=WARNING,
            detail=f"{one.host} differs by {one.offset_s:+.0f} s from Redis",
            remedy="results are right nevertheless; set the clock, for logs and traces",
        )
    if one.stuck:
        yield Diagnosis(
            about="workers",
            state=WARNING,
            detail=f"{one.host}:{one.pid} has {one.stuck} threads in timed-out iterations",
            remedy="restart it if they stay",
        )


def _is_other(state: str) -> bool:
    return state == OTHER_VERSION
