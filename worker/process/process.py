"""One worker process: Celery's consumer, the agent, orderly shutdown."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery
from celery.worker.consumer import Consumer
from oslo_config import cfg

from osbench.common.errors import OsbenchError, PluginError
from osbench.common.escaping import escaped
from osbench.common.plugin.loading.exits import refuse_exits
from osbench.common.plugin.plugins import Plugins
from osbench.common.ports import chance as secrets
from osbench.common.ports import threads as threading
from osbench.common.protocol import broker, redis_keys
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.redis_client import check, connect
from osbench.common.protocol.waiting import wait_until_there
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import user_limits
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import health_check, scheduling
from osbench.worker.process.agent import Agent, Identity, Patience
from osbench.worker.process.batch_consumer import consumer_class
from osbench.worker.process.captured_output import capture
from osbench.worker.process.celery_log import CeleryInOneLine
from osbench.worker.process.pulse import Pulse
from osbench.worker.process.supervisor import process_count
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.log_book import LogBook
from osbench.worker.session.preparation import Preparation
from osbench.worker.session.refusals import Refusals

LOG = logging.getLogger(__name__)

#: Longest wait for Celery's consumer to end, seconds.
STOP_S = 2.0
#: Pause before Celery's consumer is started again, seconds.
CONSUME_AGAIN_S = 0.2
#: Advice for a plug-in that the coordinator has and the worker lacks.
_REMEDY = "start osbench-worker with the coordinator's --plugin-path"
#: Ends this process at once; plug-ins get another.
_EXIT = os._exit


def incarnation() -> str:
    """A name for this start of this process: host, pid and 64 random bits."""
    return f"{health_check.host_name()}.{os.getpid()}.{secrets.token_hex(8)}"


def _raise_file_limit() -> None:
    """Raise the limit on open files: each virtual user has a connection per service."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _consume(
    app: Celery, name: str, agent: Agent, repair: Callable[[], None]
) -> Callable[[], None]:
    """Run Celery's consumer in a thread: it passes batches to the agent.

    `repair` makes the queue usable where somebody has put something else in its place. Returns a
    function that stops the consumer and waits at most `STOP_S`.
    """
    app.conf.task_queues = (broker.queue(name),)
    app.conf.task_default_queue = redis_keys.queue(name)
    # else Celery makes an exchange for each queue, which a broker would keep for ever
    app.conf.task_default_exchange = ""
    app.finalize()
    consumer_cls = consumer_class(agent.receive)
    for handler in logging.getLogger().handlers:
        handler.addFilter(CeleryInOneLine())
    controllers: list[Any] = []
    stopping = threading.Event()

    def consume() -> None:
        while not stopping.is_set():
            controllers[:] = [_controller(app, name, consumer_cls)]
            try:
                controllers[0].start()
            except Exception as error:  # noqa: BLE001 - whatever a message makes Celery raise
                LOG.warning("Celery: %s", escaped(repr(error)))
            if not stopping.wait(CONSUME_AGAIN_S):
                # who can write to the broker can put anything into the queue
                LOG.warning("the queue of batches held something that is no message")
                agent.receive(b"")
                with contextlib.suppress(OsbenchError):
                    repair()

    consumer = threading.Thread(target=consume, name="celery", daemon=True)
    consumer.start()

    def stop() -> None:
        stopping.set()
        # Celery has no timeout here and would block while the broker is unreachable
        for controller in controllers:
            threading.Thread(target=controller.stop, daemon=True).start()
        consumer.join(STOP_S)

    return stop


def _controller(app: Celery, name: str, consumer_cls: type[Consumer]) -> Any:
    return app.WorkController(
        consumer_cls=consumer_cls,
        pool_cls="solo",
        concurrency=1,
        hostname=name,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
    )


def _await_servers(conf: cfg.ConfigOpts, name: str, *, private: bool) -> None:
    """Wait until Redis and the broker are there. Raises StoreError where one is unfit."""
    url, broker_url = conf.messaging.redis_url, conf.messaging.broker_url
    timeout_s = conf.messaging.redis_timeout_s
    # the Redis of local mode is there, or has died
    wait_s = 0.0 if private else None
    look = partial(check, connect(url, timeout_s), url)
    wait_until_there(look, LOG.warning, wait_s)
    if broker_url:
        look = partial(broker.check, broker_url, timeout_s, receiver=name)
        wait_until_there(look, LOG.warning, wait_s)


def main(
    conf: cfg.ConfigOpts,
    plugin_paths: list[str],
    lifeline: int,
    page_fd: int | None,
    started: Callable[[], None],
    *,
    private: bool = False,
) -> int:
    """Serve until SIGTERM or SIGINT, or until `lifeline` (a pipe from the supervisor) closes.

    `page_fd` is the memory in which the supervisor finds what a dead process had taken; None where
    nobody reads it. Calls `started` when it is ready. The server of a `private` worker ends with
    it: no keys are removed. Raises OsbenchError where it cannot start.
    """
    scheduling.sharpen_timers()
    if conf.worker.realtime:
        scheduling.begin_realtime()
    else:
        scheduling.shorten_slice()
    _raise_file_limit()
    url = conf.messaging.redis_url
    ring = Keyring.load(conf.security.key_file)
    timeout_s = conf.messaging.redis_timeout_s
    name = incarnation()
    # health checks are of workers that others use
    pulse = None if private else Pulse(health_check.process_record(conf, name))
    _await_servers(conf, name, private=private)
    refuse_exits()
    log = LogBook()
    capture(log)
    plugins = Plugins([*conf.worker.plugin_path, *plugin_paths], remedy=_REMEDY)
    # imported now, so that errors in plug-in files are reported at start; a private worker has
    # those of its run, which may need none of the broken ones
    faults = plugins.faults()
    if faults and not private:
        raise PluginError(faults[0])
    identity = Identity(
        incarnation=name,
        host=socket.gethostname(),
        pid=os.getpid(),
        label=conf.worker.label,
    )
    preparation = Preparation(conf, plugins)
    agent = Agent(
        identity=identity,
        connect=lambda bound_s: connect(url, bound_s),
        equipment=_equipment(conf, ring, preparation, name, page_fd, log),
        patience=Patience(
            redis_timeout_s=timeout_s,
            coordinator_lost_s=conf.worker.coordinator_lost_s,
            max_stuck=conf.worker.max_stuck,
        ),
    )
    leave = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leave.set())
    threading.Thread(target=_watch, args=(lifeline, leave), daemon=True).start()
    app = broker.application(conf.messaging.broker_url or url)
    keys = connect(url, timeout_s)
    stop = _consume(app, name, agent, partial(broker.repair, keys, name))
    agent.start()
    if pulse is not None:
        pulse.follow(agent.progress)
    started()
    while not leave.wait(0.5):
        pass
    agent.drain()
    agent.done.wait(conf.worker.drain_timeout_s)
    preparation.close(2.0)
    if private:
        # Celery's consumer takes up to a second to stop
        return 0
    stop()
    if pulse is not None:
        pulse.close()
    try:
        agent.deregister()
    except OsbenchError as error:
        LOG.warning("%s", error)
    return 0


def _equipment(
    conf: cfg.ConfigOpts,
    ring: Keyring,
    preparation: Preparation,
    name: str,
    page_fd: int | None,
    log: LogBook,
) -> Equipment:
    return Equipment(
        incarnation=name,
        user_limits=user_limits(conf.worker.virtual_users, process_count(conf)),
        sealer=Sealer(ring),
        vault=Vault(ring),
        preparation=preparation,
        refusals=Refusals(),
        sleep=PreciseSleep(conf.worker.spin_budget),
        spool_dir=Path(conf.data_dir) / "spool",
        spool_limit_bytes=conf.worker.spool_limit_mib * 1024 * 1024,
        log=log,
        page=WillPage(page_fd, name) if page_fd is not None else None,
    )


def _watch(lifeline: int, leave: threading.Event) -> None:
    # nothing is ever written: the read returns when the supervisor has ended for any reason
    os.read(lifeline, 1)
    leave.set()


def end(code: int) -> None:
    """Exit at once, because threads of stuck iterations may never end."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    _EXIT(code)
