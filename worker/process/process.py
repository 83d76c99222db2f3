"""The main function of a worker process: Celery's consumer, the agent, orderly shutdown."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from celery import Celery
from oslo_config import cfg

from osbench.common.errors import OsbenchError, PluginError
from osbench.common.plugin.loading.exits import refuse_exits
from osbench.common.plugin.plugins import Plugins
from osbench.common.ports import chance as secrets
from osbench.common.ports import threads as threading
from osbench.common.protocol import broker, redis_keys
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.redis_client import check, connect
from osbench.common.protocol.waiting import wait_until_there
from osbench.common.protocol.wire import Wire
from osbench.common.text.escaping import escaped
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import user_limits
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import health_check, scheduling
from osbench.worker.process.agent import EAGER_S, LOCAL_EAGER_S, Agent, Identity, Patience
from osbench.worker.process.batch_consumer import CeleryInOneLine, consumer_class
from osbench.worker.process.captured_output import capture
from osbench.worker.process.leave_request import LeaveRequest
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
    """Return a name for this start of this process: host, pid and 64 random bits."""
    return f"{health_check.host_name()}.{os.getpid()}.{secrets.token_hex(8)}"


def _raise_file_limit() -> None:
    """Raise this process's soft limit on open files to its hard limit.

    Each virtual user has a connection per service.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Consumer:
    """Celery's consumer in a thread: gives batches to the agent; started again whenever it ends."""

    def __init__(self, app: Celery, name: str, agent: Agent, repair: Callable[[], None]) -> None:
        """Configure `app` for the queue of worker `name` and start the thread.

        `repair` makes the queue usable again if something else than messages was put into it; it is
        called each time before the consumer is started again.
        """
        app.conf.task_queues = (broker.queue(name),)
        app.conf.task_default_queue = redis_keys.queue(name)
        # else Celery makes an exchange for each queue, which a broker would keep for ever
        app.conf.task_default_exchange = ""
        app.finalize()
        self._app = app
        self._name = name
        self._agent = agent
        self._repair = repair
        self._class = consumer_class(agent.receive)
        for handler in logging.getLogger().handlers:
            handler.addFilter(CeleryInOneLine())
        self._controller: Any = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._consume, name="celery", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the consumer; returns after `STOP_S` seconds at the latest, ended or not."""
        self._stopping.set()
        # Celery has no timeout here and would block while the broker is unreachable
        if self._controller is not None:
            threading.Thread(target=self._controller.stop, daemon=True).start()
        self._thread.join(STOP_S)

    def _consume(self) -> None:
        while not self._stopping.is_set():
            self._controller = self._new_controller()
            try:
                self._controller.start()
            except Exception as error:  # noqa: BLE001 - whatever a message makes Celery raise
                LOG.warning("Celery: %s", escaped(repr(error)))
            if not self._stopping.wait(CONSUME_AGAIN_S):
                LOG.warning("Celery's consumer of batches ended; starting another")
                with contextlib.suppress(OsbenchError):
                    self._repair()

    def _new_controller(self) -> Any:
        return self._app.WorkController(
            consumer_cls=self._class,
            pool_cls="solo",
            concurrency=1,
            hostname=self._name,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            loglevel="WARNING",
        )


def _await_servers(conf: cfg.ConfigOpts, name: str, *, private: bool) -> None:
    """Wait until Redis and the broker are reachable; logs warnings meanwhile.

    A `private` worker, whose servers are its run's own, does not wait. Raises StoreError if one is
    unusable, and for a private worker StoreMissing if one does not respond.
    """
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
    """Serve runs until SIGTERM or SIGINT, or until `lifeline` (a pipe from the supervisor) closes.

    `page_fd`: memory in which the process notes its taken work, for the supervisor to read after
    its death; None without such a reader. Calls `started` when it is ready. At the end drains, for
    at most `[worker] drain_timeout_s`, and returns 0. The server of a `private` worker ends with
    it: no keys are removed. Raises OsbenchError if it cannot start.
    """
    _tune(conf)
    ring = Keyring.load(conf.security.key_file)
    name = incarnation()
    # health checks are of workers that others use
    pulse = None if private else Pulse(health_check.process_record(conf, name))
    _await_servers(conf, name, private=private)
    refuse_exits()
    log = LogBook()
    capture(log)
    preparation = Preparation(conf, _plugins(conf, plugin_paths, private=private))
    equipment = _equipment(conf, ring, preparation, name, page_fd, log)
    agent = _agent(conf, name, equipment, private=private)
    leave = _leave_request(lifeline)
    app = broker.application(conf.messaging.broker_url or conf.messaging.redis_url)
    keys = connect(conf.messaging.redis_url, conf.messaging.redis_timeout_s)
    consumer = _Consumer(app, name, agent, partial(Wire(keys).repair_queue, name))
    agent.start()
    if pulse is not None:
        pulse.follow(agent.progress)
    started()
    while not leave.wait(0.5):
        pass
    agent.drain()
    agent.done.wait(conf.worker.drain_timeout_s)
    preparation.close(2.0)
    # Celery's consumer takes up to a second to stop
    if not private:
        consumer.stop()
        _sign_off(agent, pulse)
    return 0


def _tune(conf: cfg.ConfigOpts) -> None:
    """Set timers, scheduling and the file limit of this process, so that iterations start on time.

    Raises ConfigError if `[worker] realtime` is set and the kernel refuses it.
    """
    scheduling.sharpen_timers()
    if conf.worker.realtime:
        scheduling.begin_realtime()
    else:
        scheduling.shorten_slice()
    _raise_file_limit()


def _plugins(conf: cfg.ConfigOpts, paths: Sequence[str], *, private: bool) -> Plugins:
    """Return the plug-ins of options and `paths`, imported now to report errors at the start.

    Raises PluginError for the first faulty file, but not for a private worker: its run may not need
    that file.
    """
    plugins = Plugins([*conf.worker.plugin_path, *paths], remedy=_REMEDY)
    faults = plugins.faults()
    if faults and not private:
        raise PluginError(faults[0])
    return plugins


def _agent(conf: cfg.ConfigOpts, name: str, equipment: Equipment, *, private: bool) -> Agent:
    url = conf.messaging.redis_url
    return Agent(
        identity=Identity(
            incarnation=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            label=conf.worker.label,
        ),
        connect=lambda bound_s: connect(url, bound_s),
        equipment=equipment,
        eager_s=LOCAL_EAGER_S if private else EAGER_S,
        patience=Patience(
            redis_timeout_s=conf.messaging.redis_timeout_s,
            coordinator_lost_s=conf.worker.coordinator_lost_s,
            max_stuck=conf.worker.max_stuck,
        ),
    )


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
        signer=Signer(ring),
        vault=Vault(ring),
        preparation=preparation,
        refusals=Refusals(),
        sleep=PreciseSleep(conf.worker.spin_budget),
        spool_dir=Path(conf.data_dir) / "spool",
        spool_limit_bytes=conf.worker.spool_limit_mib * 1024 * 1024,
        log=log,
        page=WillPage(page_fd, name) if page_fd is not None else None,
    )


def _sign_off(agent: Agent, pulse: Pulse | None) -> None:
    """Remove the records of this process: its file for health checks, then its keys in Redis.

    Errors of Redis are logged.
    """
    if pulse is not None:
        pulse.close()
    try:
        agent.deregister()
    except OsbenchError as error:
        LOG.warning("%s", error)


def _leave_request(lifeline: int) -> LeaveRequest:
    """Return a leave request that is made by SIGTERM, SIGINT, or the end of the supervisor.

    `lifeline`: descriptor of a pipe that closes when the supervisor ends; a thread reads it.
    """
    leave = LeaveRequest()
    leave.on_signals()
    threading.Thread(target=_watch, args=(lifeline, leave), daemon=True).start()
    return leave


def _watch(lifeline: int, leave: LeaveRequest) -> None:
    # nothing is ever written: the read returns when the supervisor has ended for any reason
    os.read(lifeline, 1)
    leave.ask()


def end(code: int) -> None:
    """Flush all output and exit with `code` at once: threads of stuck iterations may never end."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    _EXIT(code)
