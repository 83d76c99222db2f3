"""Connection of a run to Redis, keys and workers: shared, or private in local mode."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from oslo_config import cfg

from osbench.common.config.foreign_environment import ignored_variables_note
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.redis_client import check, connect
from osbench.common.protocol.waiting import wait_until_there
from osbench.coordinator.load.local.local_mode import LocalMode
from osbench.coordinator.load.local.local_start import EarlyStart, LocalStart

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """The addresses, keys and callbacks by which a run reaches Redis, the broker and its workers.

    One per run and coordinator process, made by `open_connection`.
    """

    redis_url: str
    broker_url: str
    keyring: Keyring
    #: The server and the workers are this run's own.
    local: bool
    #: The broker, if it is not that Redis.
    other_broker: str = ""
    #: Raises an error if a process of local mode has died.
    check: Callable[[], None]
    #: Adds known facts on a private server to the error that ends the run.
    explained: Callable[[BaseException], BaseException] = lambda error: error
    #: File to which the workers of local mode write stderr; None for shared workers.
    worker_log: Path | None = None
    #: The run can be resumed from now on, with the directory given.
    keep_in: Callable[[Path], None] = lambda _: None
    #: Asks workers that are there for this run alone to end, once it has released them.
    end_workers: Callable[[], None] = lambda: None


def _nothing_of_ours() -> None:
    """Do nothing: `check` of shared servers, which the run has not started."""


def _none(interrupts: Callable[[], int]) -> bool:
    return interrupts() == 0


@contextlib.contextmanager
def open_connection(  # noqa: PLR0913 - what a run and its resumption need of it
    conf: cfg.ConfigOpts,
    *,
    processes: int,
    virtual_users: int,
    plugin_paths: Sequence[str],
    keyring: Keyring | None = None,
    earlier: Path | None = None,
    wait_s: float = 0.0,
    interrupts: Callable[[], int] = lambda: 0,
    early: EarlyStart | None = None,
    modules: Sequence[str] = (),
) -> Iterator[Connection]:
    """Yield the connection of a run: to the shared Redis if `conf` has its URL, else to local mode.

    Local mode starts a private Redis and `processes` workers of `virtual_users` each, and ends them
    on exit. `keyring` and `earlier` are the keys and the directory of a local run that is resumed.
    A local start is taken from `early` if it has one, else made. Its workers share the imports of
    `modules`.

    Waits at most `wait_s` seconds each for an unreachable shared Redis and broker, as long as
    `interrupts` (the count of Ctrl-C) is 0. Raises ConfigError if a shared Redis has no key file,
    StoreError if a server is unfit, StoreMissing if it is unreachable, KeyboardInterrupt if
    interrupted meanwhile. Local mode raises StoreError, OSError.
    """
    if note := ignored_variables_note(os.environ):
        LOG.warning(note)
    if conf.messaging.redis_url:
        yield _shared_connection(conf, wait_s, partial(_none, interrupts))
        return
    start = (early.take() if early is not None else None) or LocalStart()
    with LocalMode(
        conf,
        processes,
        virtual_users,
        plugin_paths=plugin_paths,
        log_level=conf.log_level,
        start=start,
        keyring=keyring,
        earlier=earlier,
        modules=modules,
    ) as local:
        local.interrupts = interrupts
        local.start_workers()
        yield _own(local)


def _shared_connection(
    conf: cfg.ConfigOpts, wait_s: float, patient: Callable[[], bool]
) -> Connection:
    """Return the connection to the shared Redis and broker, after waiting until both respond.

    Waits for each at most `wait_s` seconds while `patient` returns true, and logs a warning then.
    Raises ConfigError, StoreError, StoreMissing and KeyboardInterrupt as `open_connection` does.
    """
    url, broker_url = conf.messaging.redis_url, conf.messaging.broker_url
    keyring = Keyring.load(conf.security.key_file)
    timeout_s = conf.messaging.redis_timeout_s
    wait_until_there(partial(check, connect(url, timeout_s), url), LOG.warning, wait_s, patient)
    if broker_url:
        # Celery takes a while to import, and local mode begins without it
        from osbench.common.protocol import broker  # noqa: PLC0415 - see above

        look = partial(broker.check, broker_url, timeout_s)
        wait_until_there(look, LOG.warning, wait_s, patient)
    return Connection(
        redis_url=url,
        broker_url=broker_url or url,
        other_broker=broker_url,
        keyring=keyring,
        local=False,
        check=_nothing_of_ours,
    )


def _own(local: LocalMode) -> Connection:
    return Connection(
        redis_url=local.redis_url,
        broker_url=local.broker_url,
        keyring=local.keyring,
        local=True,
        check=local.check,
        explained=local.explained,
        worker_log=local.worker_log,
        keep_in=local.keep_in,
        end_workers=local.end_workers,
    )
