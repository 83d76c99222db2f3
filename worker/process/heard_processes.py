"""Readiness check: reads the heartbeats of this host's worker processes from Redis."""

from __future__ import annotations

from oslo_config import cfg

from osbench.common.errors import Untrusted
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.wire import Wire
from osbench.worker.process.health_check import recorded_names


def heard_states(conf: cfg.ConfigOpts) -> list[str]:
    """Return the state of each worker process of this host whose heartbeat in Redis is verified.

    Only of this data directory; with `[worker] label`, only of processes with that label. Raises
    ConfigError without keys, StoreUnreachable, StoreError.
    """
    return [beat.state for beat in beats(conf)]


def beats(conf: cfg.ConfigOpts) -> list[Heartbeat]:
    """Return the verified heartbeats of this host's worker processes, from Redis.

    Only of processes with a record in this data directory; with `[worker] label`, only with that
    label. Raises ConfigError without keys, StoreUnreachable, StoreError.
    """
    signer = Signer(Keyring.load(conf.security.key_file))
    url = conf.messaging.redis_url
    with connect(url, conf.messaging.redis_timeout_s) as client:
        wire = Wire(client)
        wire.ping()
        found = wire.heartbeats(recorded_names(conf))
    read = [_beat(signer, data) for data in found if data is not None]
    return [one for one in read if one is not None and conf.worker.label in ("", one.label)]


def _beat(signer: Signer, data: bytes) -> Heartbeat | None:
    try:
        return Heartbeat.parse(signer.verify(Heartbeat.KIND, data))
    except Untrusted:
        return None
