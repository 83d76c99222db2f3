"""Whether the worker processes of this host are heard in Redis: what a probe asks."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, cast

import psutil
from oslo_config import cfg

from osbench.common.errors import ConfigError, Untrusted
from osbench.common.private_files import make_private_directory
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import connect, reached


def _directory(conf: cfg.ConfigOpts) -> Path:
    return Path(conf.data_dir) / "workers"


def register(conf: cfg.ConfigOpts, incarnation: str) -> None:
    """Leave the name of a worker process in the data directory, and drop those of dead ones.

    A probe then asks Redis for these by name; looking for them there would mean a scan of all
    keys, traces among them, by every worker. Raises ConfigError.
    """
    directory = _directory(conf)
    host = incarnation.partition(".")[0]
    try:
        make_private_directory(directory)
        for path in directory.glob(f"{host}.*"):
            if not _may_live(path.name):
                path.unlink(missing_ok=True)
        (directory / incarnation).touch(mode=0o600)
    except OSError as error:
        raise ConfigError(f"[DEFAULT] data_dir: {directory}: {error.strerror}") from None


def _may_live(incarnation: str) -> bool:
    pid = incarnation.split(".")[1]
    return pid.isdecimal() and int(pid) != os.getpid() and psutil.pid_exists(int(pid))


def forget(conf: cfg.ConfigOpts, incarnation: str) -> None:
    """Take the name of a worker process away again."""
    with contextlib.suppress(OSError):
        (_directory(conf) / incarnation).unlink(missing_ok=True)


def heard(conf: cfg.ConfigOpts) -> int:
    """Worker processes of this data directory whose heartbeat is in Redis and verified.

    With `[worker] label` only those of that label; not those that are stuck and take no more
    work. Raises ConfigError without keys, StoreAway, StoreError.
    """
    sealer = Sealer(Keyring.load(conf.security.key_file))
    try:
        names = sorted(path.name for path in _directory(conf).iterdir())
    except FileNotFoundError:
        names = []
    client = connect(conf.messaging.redis_url, conf.messaging.redis_timeout_s)
    with reached(conf.messaging.redis_url):
        client.ping()
        asked = [redis_keys.worker(name) for name in names]
        found = cast(list[Any], client.mget(asked)) if asked else []
    return sum(_counts(conf, sealer, data) for data in found if data is not None)


def _counts(conf: cfg.ConfigOpts, sealer: Sealer, data: bytes) -> bool:
    try:
        beat = Heartbeat.parse(sealer.open(Heartbeat.KIND, data))
    except Untrusted:
        return False
    return beat.state != "stuck" and conf.worker.label in ("", beat.label)
