"""A process with many simulated workers. SIGTERM drains them; `--output` says what they saw."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import click
import numpy as np
import redis

from osbench.common.config.config import load
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Specification
from osbench.common.protocol.redis_client import connect
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import user_limits
from osbench.worker.http.observer import Observer
from osbench.worker.process import agent
from osbench.worker.process.agent import Agent, Identity, Patience
from osbench.worker.process.batch_consumer import signed_batch
from osbench.worker.process.host_load import HostSample
from osbench.worker.process.process import incarnation
from osbench.worker.session import workloads
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.preparation import Preparation, Prepared
from osbench.worker.session.refusals import Refusals
from simulation.bulk_engines import BulkArrivals, BulkUsers

#: Longest wait for a message, as Celery waits, and between two looks at sessions, seconds.
BRPOP_S = 1
LOOK_S = 0.25


class SerialPreparation(Preparation):
    """Prepares one workload of this process after the other: in 3.11 parsing breaks otherwise."""

    LOCK: ClassVar[threading.Lock] = threading.Lock()

    def prepare(self, specification: Specification, observer: Observer | None = None) -> Prepared:
        with self.LOCK:
            return super().prepare(specification, observer)


class UnknownHost:
    """Replaces `HostLoad`, which would read a file for each thread of the workers beside it."""

    cores = 0
    quota = 0.0

    def measure(self, now_s: float) -> HostSample:
        """Return that the load of the host is not known."""
        return HostSample(0.0, -1.0, 0.0)


class SimulatedWorker:
    """The agent of a worker process, and what brings it its batches."""

    def __init__(self, conf: Any, plugins: Plugins, ring: Keyring, label: str) -> None:
        url = conf.messaging.redis_url
        self.name = incarnation()
        self._client = connect(url, 2.0 * BRPOP_S + 5)
        self.agent = Agent(
            identity=Identity(
                incarnation=self.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                label=label,
            ),
            connect=lambda bound_s: connect(url, bound_s),
            equipment=Equipment(
                incarnation=self.name,
                user_limits=user_limits(conf.worker.virtual_users, processes=1),
                signer=Signer(ring),
                vault=Vault(ring),
                preparation=SerialPreparation(conf, plugins),
                refusals=Refusals(),
                sleep=PreciseSleep(0.0),
                spool_dir=Path(conf.data_dir) / "spool",
                spool_limit_bytes=conf.worker.spool_limit_mib << 20,
            ),
            patience=Patience(
                redis_timeout_s=conf.messaging.redis_timeout_s,
                coordinator_lost_s=conf.worker.coordinator_lost_s,
                max_stuck=conf.worker.max_stuck,
            ),
            # hundreds that look 20 times a second before the load would take all cores
            eager_s=agent.READ_S,
        )

    def start(self) -> None:
        """Register, and take batches."""
        self.agent.start()
        threading.Thread(target=self._consume, name="consumer", daemon=True).start()

    def _consume(self) -> None:
        key = redis_keys.PREFIX + redis_keys.queue(self.name)
        while True:
            try:
                found: Any = self._client.brpop([key], timeout=BRPOP_S)
            except redis.RedisError:
                time.sleep(BRPOP_S)
                continue
            if found is not None:
                body = base64.b64decode(json.loads(found[1])["body"])
                self.agent.receive(signed_batch(SimpleNamespace(body=body)))


def watch(workers: Sequence[SimulatedWorker], seen: list[float], leave: threading.Event) -> None:
    """Note, until the process leaves, for how long the coordinator was not heard under load."""
    while not leave.wait(LOOK_S):
        for worker in workers:
            session = worker.agent._session
            if session is not None and session.state == "running":
                seen.append(session.unheard_s())


@click.command()
@click.option("--config-file", required=True, type=click.Path(exists=True))
@click.option("--workers", type=click.IntRange(1), required=True)
@click.option("--plugin-path", multiple=True, type=click.Path(exists=True))
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), required=True)
def main(config_file: str, workers: int, plugin_path: tuple[str, ...], output: Path) -> None:
    """Serve runs until SIGTERM."""
    for name, engine in (("OpenEngine", BulkArrivals), ("ClosedEngine", BulkUsers)):
        setattr(workloads, name, engine)
    # a full collection by each of them, of the memory of all
    workloads._exempt_from_garbage_collection = lambda **_: None  # type: ignore[attr-defined]
    agent.NEW_S = 0.0  # type: ignore[misc]
    agent.HostLoad = UnknownHost  # type: ignore[misc, assignment]
    conf = load([config_file])
    ring = Keyring.load(conf.security.key_file)
    leave = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leave.set())
    threading.stack_size(256 << 10)
    # each would import the same plug-ins again
    plugins = Plugins([*plugin_path])
    found = [SimulatedWorker(conf, plugins, ring, f"simulated-{at}") for at in range(workers)]
    for one in found:
        one.start()
    seen: list[float] = []
    watch(found, seen, leave)
    for one in found:
        one.agent.drain()
    deadline = time.monotonic() + conf.worker.drain_timeout_s
    for one in found:
        one.agent.done.wait(max(0.0, deadline - time.monotonic()))
        one.agent.deregister()
    percentiles = np.percentile(seen, [50, 99, 100]).tolist() if seen else [0.0] * 3
    output.write_text(json.dumps({"unheard_s": percentiles}), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main()
