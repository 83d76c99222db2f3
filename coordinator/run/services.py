"""What a run works with: made once it is connected, and never replaced."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.clock import ClockOffset, measure
from osbench.common.protocol import broker
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.messages import Batch
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.store import RedisStore
from osbench.coordinator.contexts.context_stack import ContextStack, Tell
from osbench.coordinator.contexts.state_store import ContextStateStore
from osbench.coordinator.dispatch.port import PlannedBatch
from osbench.coordinator.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.fleet.pool import WorkerPool
from osbench.coordinator.run.connection import Connection
from osbench.coordinator.run.plan import RunPlan
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.transport.channel import Channel
from osbench.coordinator.transport.controls import Controls
from osbench.coordinator.transport.receiver import Receiver
from osbench.coordinator.transport.server_identity import Server


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a run waits for what, seconds."""

    #: Silence after which a worker is lost.
    lost_after_s: float
    #: How long a run whose workers are all lost waits for others.
    wait_s: float
    #: How long Redis or the broker may be away under load.
    patience_s: float


class RunDispatchPort:
    """The port through which the dispatchers of all workloads journal and send."""

    def __init__(self, directory: RunDirectory, channel: Channel) -> None:
        self._directory = directory
        self._channel = channel
        self._ids = itertools.count(1)

    def next_batch_id(self) -> int:
        """Ids grow over the run and are never used twice."""
        return next(self._ids)

    def journal(self, records: Iterable[dict[str, Any]]) -> None:
        """Write decisions; returns when they are on disk."""
        self._directory.decide(records)

    def publish(self, batch: PlannedBatch) -> None:
        """Send a batch to its worker's queue. Raises StoreAway."""
        self._channel.publish(
            Batch(
                run=self._channel.run_id,
                epoch=self._channel.epoch,
                incarnation=batch.worker,
                workload=batch.workload,
                batch=batch.batch,
                intervals=batch.intervals,
                dues=batch.dues,
                rows=batch.rows,
            )
        )

    def revoke(self, batches: Sequence[int]) -> list[bool]:
        """Claim batches in the coordinator's name. Raises StoreAway."""
        return self._channel.revoke(batches)


@dataclass(frozen=True, kw_only=True)
class RunServices:
    """Everything that a run talks to."""

    #: The run directory: journal, result blocks, documents.
    directory: RunDirectory
    channel: Channel
    controls: Controls
    receiver: Receiver
    dispatch: RunDispatchPort
    pool: WorkerPool
    server: Server
    #: Redis time on this host.
    clock: ClockOffset
    contexts: ContextStack
    limits: Limits
    #: Raises where a server or worker of local mode has died.
    check: Callable[[], None]


def open_services(
    plan: RunPlan, connection: Connection, directory: RunDirectory, on_context: Tell
) -> RunServices:
    """Connect a run; `on_context` shows how far a context is. Raises StoreAway, StoreError."""
    conf = plan.conf
    client = connect(connection.redis_url, conf.messaging.redis_timeout_s)
    sealer = Sealer(connection.keyring)
    pool = WorkerPool(client, HeartbeatReader(client, sealer), plan.run_id)
    channel = Channel(
        store=RedisStore(client, plan.run_id),
        sealer=sealer,
        vault=Vault(connection.keyring),
        app=broker.application(connection.broker_url),
        run_id=plan.run_id,
        epoch=secrets.token_hex(8),
    )
    kept = ContextStateStore(directory.path, Path(conf.data_dir), plan.run_id, plan.deployment)
    return RunServices(
        directory=directory,
        channel=channel,
        controls=Controls(channel),
        receiver=Receiver(channel, pool.workers, directory),
        dispatch=RunDispatchPort(directory, channel),
        pool=pool,
        server=Server(client),
        clock=measure(client),
        contexts=ContextStack(kept, plan.plugins, on_context),
        limits=Limits(
            lost_after_s=conf.coordinator.worker_lost_after_s,
            wait_s=plan.wait_s,
            patience_s=conf.messaging.patience_s,
        ),
        check=connection.check,
    )
