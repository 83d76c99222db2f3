"""Services of a run: created once it is connected, and never replaced."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osbench.common.machine.import_block import import_block
from osbench.common.machine.redis_clock import RedisClock
from osbench.common.ports import clock as time
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.messages import Batch, Offer
from osbench.common.protocol.redis_client import Client, connect
from osbench.common.protocol.store import Store
from osbench.common.protocol.wire import Wire
from osbench.coordinator.formatting import count
from osbench.coordinator.load.dispatch.port import PlannedBatch
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.load.fleet.pool import WorkerPool
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.load_clock import LoadClock, lead_s, local_lead_s
from osbench.coordinator.load.run.plan import RunInterface, RunPlan
from osbench.coordinator.load.run.resumption.key_notes import KeyNotes
from osbench.coordinator.load.run.run_history import RunHistory
from osbench.coordinator.load.transport.channel import Channel
from osbench.coordinator.load.transport.controls import Controls
from osbench.coordinator.load.transport.receiver import Receiver
from osbench.coordinator.plugins.contexts.context_stack import ContextStack
from osbench.coordinator.plugins.contexts.state_store import ContextStateStore
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.storage.progress import contexts_at
from osbench.coordinator.results.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from osbench.coordinator.load.transport.publisher import Publisher

LOG = logging.getLogger(__name__)


#: Between two looks at workers that prepare, and in local mode, seconds.
AWAIT_S = 0.02
LOCAL_AWAIT_S = 0.005
#: Longest wait of a read for results, seconds.
READ_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Longest waits of a run, and intervals at which it looks again; in seconds."""

    #: Silence after which a worker is lost.
    lost_after_s: float
    #: Longest wait for other workers of a run whose workers are all lost.
    wait_s: float
    #: Longest time for which Redis or the broker may be unreachable under load.
    patience_s: float
    #: From the last preparation of workers to the start of a load, by the virtual users that
    #: start with it on each worker.
    lead_s: Callable[[float], float] = lead_s
    #: Between two looks at workers that prepare.
    await_s: float = AWAIT_S
    #: Longest wait of a read for results meanwhile; results that are ready do not end it.
    block_s: float = READ_S


class RunPort:
    """The port through which fleet and dispatch journal decisions and send messages.

    Each journalled decision is applied to accounts and history, too.
    """

    def __init__(
        self,
        directory: RunDirectory,
        accounts: Accounts,
        history: RunHistory,
        channel: Channel,
        client: Client,
    ) -> None:
        self._directory = directory
        self._accounts = accounts
        self._history = history
        self._channel = channel
        self._wire = Wire(client)
        #: Events that are written with the next decisions.
        self._noted: list[dict[str, Any]] = []

    def decide(self, records: Iterable[dict[str, Any]]) -> None:
        """Write `records` of decisions to the journal; when they are on disk, apply them.

        Noted events are written before them. Raises StorageError; then nothing is applied.
        """
        decided = list(records)
        self._directory.decide([*self._noted, *decided])
        self._noted.clear()
        for record in decided:
            self.follow(record)

    def follow(self, record: dict[str, Any]) -> None:
        """Apply a record to accounts and history in memory, without writing it."""
        self._accounts.apply(record)
        self._history.apply(record)

    def note(self, event: dict[str, Any]) -> None:
        """Apply an event to the history at once, and keep it for the journal; accounts ignore it.

        It is written with the next decisions, and lost if the coordinator is killed before.
        """
        self._history.apply(event)
        self._noted.append(event)

    def join(self, mid: str, incarnation: str) -> Membership:
        """Return the membership of a worker process that has joined; journal it if it is new.

        A membership is one worker process's part in the run. Raises StorageError.
        """
        found = self._accounts.memberships.get(mid)
        if found is None:
            self.decide([self._accounts.enrolment(mid, incarnation)])
            found = self._accounts.memberships[mid]
        return found

    def miss(self, membership: Membership, blocks: Sequence[int]) -> None:
        """Journal that acknowledged blocks are not on disk: their iterations count as lost.

        `blocks`: their numbers in the membership. No worker keeps such blocks any more. Also logs a
        warning. Raises StorageError.
        """
        LOG.warning(
            "the disk has lost %s of worker %s that were acknowledged: their iterations are lost",
            count(len(blocks), "result block"),
            membership.name,
        )
        self.decide([{"do": "missing", "mid": membership.mid, "numbers": list(blocks)}])

    def offer(self, offers: Iterable[Offer]) -> None:
        """Write offers, which ask workers to join the run, to Redis. Raises StoreUnreachable."""
        self._channel.offer(offers)

    def publish(self, batches: Sequence[PlannedBatch]) -> None:
        """Send batches to the queues of their workers. Raises StoreUnreachable, StoreError."""
        self._channel.publish(
            Batch(
                run=self._channel.run_id,
                incarnation=batch.worker.incarnation,
                session=batch.worker.session,
                workload=batch.workload,
                seq=batch.seq,
                intervals=batch.intervals,
                dues=batch.dues,
                rows=batch.rows,
            )
            for batch in batches
        )

    def forget(self, incarnation: str) -> None:
        """Delete the queue and the heartbeat of a worker process that has ended from Redis.

        Raises StoreUnreachable.
        """
        self._wire.forget(incarnation)


@dataclass(frozen=True, kw_only=True)
class RunServices:
    """Connections and state of a run, shared by its parts; made once, by `open_services`."""

    #: The run directory: journal, result blocks, documents.
    directory: RunDirectory
    channel: Channel
    controls: Controls
    receiver: Receiver
    #: State that follows from journal and blocks.
    accounts: Accounts
    #: Events of the journal, for reports.
    history: RunHistory
    port: RunPort
    pool: WorkerPool
    #: Redis time on this host.
    clock: RedisClock
    #: Seconds since the start of each load.
    load_clock: LoadClock
    contexts: ContextStack
    #: Which key the run's messages are signed with.
    key_notes: KeyNotes
    limits: Limits
    #: Raises an error if a server or worker of local mode has died.
    check: Callable[[], None]
    #: Adds known facts on a server of local mode to the error that ends the run.
    explained: Callable[[BaseException], BaseException]


def open_services(
    plan: RunPlan, connection: Connection, directory: RunDirectory, ui: RunInterface
) -> RunServices:
    """Create the clients and services of a run; loads the states of its contexts from `directory`.

    `ui` shows the progress of contexts. Raises StoreError if the URL of Redis is malformed,
    and OsbenchError if the states cannot be read.
    """
    conf = plan.conf
    client = connect(connection.redis_url, conf.messaging.redis_timeout_s)
    signer = Signer(connection.keyring)
    channel = _channel(plan.run_id, connection, client, signer)
    accounts = Accounts()
    history = RunHistory({one.number: one.name for one in plan.workloads})
    port = RunPort(directory, accounts, history, channel, client)
    clock = RedisClock(client)
    kept = ContextStateStore.load(directory.path, Path(conf.data_dir))
    kept.deployment = plan.deployment
    begun_s = time.monotonic()

    def on_context(name: str, done: int, planned: int) -> None:
        ui.progress(contexts_at(name, done, planned, time.monotonic() - begun_s))

    return RunServices(
        directory=directory,
        channel=channel,
        controls=Controls(channel),
        receiver=Receiver(channel, accounts, directory),
        accounts=accounts,
        history=history,
        port=port,
        pool=WorkerPool(port, HeartbeatReader(client, signer), plan.run_id, plan.zones),
        clock=clock,
        load_clock=LoadClock(clock, accounts),
        contexts=ContextStack(kept, plan.plugins, on_context),
        key_notes=KeyNotes(connection.keyring, port),
        limits=Limits(
            lost_after_s=conf.coordinator.worker_lost_after_s,
            wait_s=plan.wait_s,
            patience_s=conf.messaging.patience_s,
            lead_s=local_lead_s if connection.local else lead_s,
            await_s=LOCAL_AWAIT_S if connection.local else AWAIT_S,
            block_s=LOCAL_AWAIT_S if connection.local else READ_S,
        ),
        check=connection.check,
        explained=connection.explained,
    )


def _channel(run_id: str, connection: Connection, client: Client, signer: Signer) -> Channel:
    return Channel(
        store=Store(client, run_id),
        client=client,
        signer=signer,
        vault=Vault(connection.keyring),
        publisher=partial(_publisher, connection, client),
        run_id=run_id,
    )


def _publisher(connection: Connection, client: Client) -> Publisher:
    # workers prepare while Celery is imported
    with import_block():
        from osbench.common.protocol import broker  # noqa: PLC0415 - see above
        from osbench.coordinator.load.transport.publisher import Publisher  # noqa: PLC0415 - see above

        application = broker.sending_application(connection.broker_url)
    return Publisher(application, client, connection.other_broker)
