"""Health check: whether the worker processes of this host have a heartbeat in Redis."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil
from oslo_config import cfg

from osbench.common.errors import ConfigError, Untrusted
from osbench.common.private_files import make_private_directory
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import connect, reached
from osbench.common.protocol.store import read_records


def _directory(conf: cfg.ConfigOpts) -> Path:
    return Path(conf.data_dir) / "workers"


def register(conf: cfg.ConfigOpts, incarnation: str) -> None:
    """Record a worker process in the data directory, and remove records of dead ones.

    A probe reads the heartbeats of these processes by name, without a scan of all keys in Redis.
    Raises ConfigError.
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
    """Remove the record of a worker process."""
    with contextlib.suppress(OSError):
        (_directory(conf) / incarnation).unlink(missing_ok=True)


def heard(conf: cfg.ConfigOpts) -> int:
    """Number of worker processes of this data directory with a verified heartbeat in Redis.

    With `[worker] label` only those with that label. Stuck processes are not counted. Raises
    ConfigError without keys, StoreAway, StoreError.
    """
    return sum(beat.state != "stuck" for beat in beats(conf))


def beats(conf: cfg.ConfigOpts) -> list[Heartbeat]:
    """The verified heartbeats of the worker processes of this data directory.

    With `[worker] label` only those with that label. Raises ConfigError without keys, StoreAway,
    StoreError.
    """
    sealer = Sealer(Keyring.load(conf.security.key_file))
    try:
        names = sorted(path.name for path in _directory(conf).iterdir())
    except FileNotFoundError:
        names = []
    url = conf.messaging.redis_url
    with connect(url, conf.messaging.redis_timeout_s) as client, reached(url):
        client.ping()
        asked = [redis_keys.worker(name) for name in names]
        found = read_records(client, asked)
    read = [_beat(sealer, data) for data in found if data is not None]
    return [one for one in read if one is not None and conf.worker.label in ("", one.label)]


def _beat(sealer: Sealer, data: bytes) -> Heartbeat | None:
    try:
        return Heartbeat.parse(sealer.open(Heartbeat.KIND, data))
    except Untrusted:
        return None
