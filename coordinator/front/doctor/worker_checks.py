"""Checks the workers whose heartbeats are in the shared Redis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oslo_config import cfg

from osbench import __version__
from osbench.common.errors import OsbenchError
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import connect
from osbench.coordinator.formatting import count
from osbench.coordinator.front.doctor.diagnosis import ERROR, OK, WARNING, Diagnosis
from osbench.coordinator.front.doctor.redis_checks import APART_S
from osbench.coordinator.load.fleet.heartbeats import OTHER_VERSION, HeartbeatReader


def look_at_workers(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    """Yield the diagnoses of workers: foreign keys, other versions, capacity, clocks, threads.

    Capacity is always among them, clocks and stuck threads only with faults. Nothing in local mode,
    or if Redis or the keys cannot be used: other checks report that.
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
            detail=f"that of {one.host} is {one.offset_s:+.0f} s from that of Redis",
            remedy="runs are right nevertheless; set it, for logs and traces",
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
