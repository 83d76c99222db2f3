"""Local mode as a context manager: starts and ends the private server and workers of one run.

Data of the server is kept in the run directory after the coordinator has ended.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from oslo_config import cfg

from osbench.common.errors import FleetError, StoreError, StoreLost, StoreUnreachable
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.wire import Wire
from osbench.common.text.escaping import decoded_text
from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.child import Child
from osbench.coordinator.load.local.lifeline import CLEAR_S, Lifeline
from osbench.coordinator.load.local.local_start import LocalStart
from osbench.coordinator.load.local.server import PrivateServer
from osbench.coordinator.load.local.settings import write_config
from osbench.coordinator.results.storage.resumable import PLAN, SERVER, SERVER_LOCK

LOG = logging.getLogger(__name__)

#: Seconds in addition to the workers' own drain time before they are killed.
_DRAIN_MARGIN_S = 8.0
#: In a log: something that its writer wants to be read.
_WARNS = re.compile(r" (?:WARNING|ERROR|CRITICAL) ")
#: After which it is said that workers are waited for.
_SAID_S = 3.0
#: Longest wait for the watchdog of the coordinator that is gone, and between two looks, seconds.
_WATCHDOG_S = CLEAR_S + watchdog.DUMP_S
_POLL_S = 0.05
#: Bound of a reply of the server, seconds.
_REPLY_S = 5.0


class LocalMode:
    """A private Redis server, keys made for the run, and private workers, as a context manager.

    All of it is removed, however the coordinator ends, even after kill -9: leaving the `with` block
    ends everything in order, and the watchdog ends the rest.
    """

    #: `unix://` URL of the private server.
    redis_url: str
    #: The same server as Celery names it.
    broker_url: str
    #: Keys of this run.
    keyring: Keyring
    #: Configuration of the private workers, mode 0600.
    config_file: Path
    #: Private folder, mode 0700.
    folder: Path
    #: Log file of the workers' stdout and stderr.
    worker_log: Path
    #: Seconds that workers get to drain before they are killed; may be changed until then.
    drain_s: float
    #: Counts Ctrl-C: one more kills workers that are waited for at the end.
    interrupts: Callable[[], int]

    def __init__(  # noqa: PLR0913 - what a run, its resumption and tests need
        self,
        conf: cfg.ConfigOpts,
        workers: int,
        virtual_users: int,
        *,
        plugin_paths: Sequence[str] = (),
        log_level: str = "WARNING",
        start: LocalStart | None = None,
        worker_command: Sequence[str] = (),
        keyring: Keyring | None = None,
        earlier: Path | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        """Prepare `workers` worker processes of `virtual_users` virtual users each; starts nothing.

        The workers get the options of `conf`. Workers that wait in `start` are used; else
        `worker_command` is started with their arguments. Without `start`, entry makes a
        `LocalStart`. `keyring`, `earlier`: keys and directory of a resumed run; None for new keys
        and an empty server. The worker processes share the imports of `modules`.
        """
        self.interrupts = lambda: 0
        self.drain_s = conf.worker.drain_timeout_s + _DRAIN_MARGIN_S
        self._conf = conf
        self.keyring = keyring or Keyring.generate()
        self._earlier = earlier
        self._keeping: watchdog.Keeping | None = None
        self._log_level = log_level
        self._command = worker_command
        self._arguments = ["--processes", str(workers), "--virtual-users", str(virtual_users)]
        for path in plugin_paths:
            self._arguments += ["--plugin-path", path]
        self._modules = modules
        self._start = start
        self._server: PrivateServer | None = None
        self._workers: Child | None = None
        #: The workers were asked to end.
        self._asked = False
        #: All processes but the server are known to have ended.
        self._ended = False

    def __enter__(self) -> Self:
        """Start watchdog and server, write keys and configuration; starts no workers.

        If that fails, all that was started is ended. Raises StoreError, OSError.
        """
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start_workers(self) -> None:
        """Start the workers and return at once; they are ready when they register in Redis.

        Call `check` while waiting for them, as they may exit.
        """
        assert self._start is not None, "workers are started inside the with block"
        assert self._workers is None, "workers are started once"
        arguments = [*self._arguments, "--config-file", str(self.config_file)]
        if self._start.workers is not None:
            # they need not look for the server that is made for them, nor tidy it up
            arguments.insert(0, "--private")
        self._workers = self._start.begin_workers(arguments, self._command, self._modules)

    def end_workers(self) -> None:
        """Ask the workers to end, without waiting: their memory is not needed for the report.

        `check` then misses none of them.
        """
        if self._workers:
            self._asked = True
            watchdog.send(self._workers.leader, signal.SIGTERM)

    def keep_in(self, directory: Path) -> None:
        """Keep results that workers have delivered and the coordinator has not read, for `resume`.

        `close` saves them in the run directory `directory`, if the run can be resumed then. If the
        coordinator is killed, the watchdog saves them.
        """
        assert self._start is not None, "there is something to keep inside the with block"
        self._keeping = _keeping_in(directory)
        self._start.lifeline.register_keeping(self._keeping)

    def check(self) -> None:
        """Raise an error if the server or the workers have exited; restart an ended watchdog.

        ServerDied (a StoreError) for the server, FleetError for the workers, each with the last
        lines of the log.
        """
        if self._start:
            self._start.lifeline.check()
        if self._server:
            self._server.check()
        missed = self._workers if not self._asked else None
        exit_reason = missed.exit_reason() if missed else None
        if exit_reason:
            raise FleetError(
                "the workers of local mode have ended; correct the cause, then start or resume "
                f"the run: their process {exit_reason}"
            )

    def explained(self, error: BaseException) -> BaseException:
        """Return an error that ends the run, with the last log lines of the process that failed.

        FleetError gets the lines of the workers' supervisor if it runs and they have a warning. For
        StoreUnreachable and StoreLost it is the server; if that has ended, ServerDied is returned.
        """
        if isinstance(error, FleetError) and self._workers and not self._workers.exit_reason():
            said = self._workers.log_end()
            return FleetError(f"{error}; {said}") if _WARNS.search(said) else error
        if self._server is None or not isinstance(error, StoreUnreachable | StoreLost):
            return error
        return self._server.explained(error)

    def close(self) -> None:
        """End workers, server and watchdog, and remove the folder. May be called repeatedly.

        Workers get `drain_s` seconds to end, `watchdog.GRACE_S` at most if the server is silent; an
        interrupt kills them at once. Then the server's data is saved, if `keep_in` was called and
        the run can be resumed.
        """
        try:
            if self._workers and self._server:
                grace_s = self._grace_s()
                leaders = [self._server.leader]
                self._ended = self._workers.end(
                    grace_s, self.folder, leaders, self._hurried(grace_s)
                )
                if self._keeping:
                    self._keeping.keep(self.folder)
        finally:
            self._clear()

    def _hurried(self, grace_s: float) -> Callable[[], bool]:
        """Return a function that returns whether an interrupt has come, after this call.

        It is called while workers drain: an interrupt kills them. Once after `_SAID_S` seconds, it
        logs that they are waited for.
        """
        before, say_at = self.interrupts(), time.monotonic() + _SAID_S
        said = False

        def hurried() -> bool:
            nonlocal said
            if not said and time.monotonic() >= say_at:
                said = True
                LOG.warning(
                    "the run is over; its workers have up to %g s to end; Ctrl-C kills them",
                    grace_s,
                )
            return self.interrupts() > before

        return hurried

    def _grace_s(self) -> float:
        assert self._server is not None
        return self.drain_s if self._server.answers() else min(self.drain_s, watchdog.GRACE_S)

    def _open(self) -> None:
        if self._start is None:
            self._start = LocalStart(workers=False)
        self.folder, self.worker_log = self._start.folder, self._start.worker_log
        self._begin_server(self._start.lifeline)
        assert self._server is not None, "it answers"
        self.redis_url = self._server.url
        self.broker_url = f"redis+socket://{self._server.socket}"
        key_file = self.folder / "keys"
        # removed with the run
        self.keyring.save(key_file, synced=False)
        self.config_file = self.folder / "osbench.conf"
        changes = {
            # files of workers, including spooled results, are removed with the run
            ("DEFAULT", "data_dir"): self.folder,
            ("DEFAULT", "log_level"): self._log_level,
            ("messaging", "redis_url"): self.redis_url,
            ("messaging", "broker_url"): self.broker_url,
            ("security", "key_file"): key_file,
            # they are part of the run, and the port may be that of the host's own workers
            ("worker", "metrics_address"): "",
        }
        write_config(self.config_file, self._conf, changes)

    def _begin_server(self, lifeline: Lifeline) -> None:
        """Start the server, with an earlier one's data if readable. Raises StoreError, OSError."""
        restored = self._earlier is not None and _restore_dump(self._earlier, self.folder)
        self._server = PrivateServer(self.folder, lifeline)
        try:
            self._server.await_response()
            if restored:
                _forget_workers(self._server.url)
        except (StoreError, StoreUnreachable) as error:
            if not restored:
                raise
            # written by a later version, perhaps: what was in hand counts as lost
            LOG.warning("the last results of workers cannot be read: %s", error)
            self._server.end()
            (self.folder / watchdog.DUMP).unlink(missing_ok=True)
            self._server = PrivateServer(self.folder, lifeline)
            self._server.await_response()

    def _clear(self) -> None:
        """End the server, remove the folder, and end the watchdog.

        If that is interrupted, the watchdog does the rest.
        """
        try:
            if self._server:
                server_ended = self._server.end()
                shutil.rmtree(self.folder, ignore_errors=True)
                if self._ended and server_ended and self._start:
                    self._start.lifeline.register_end()
        finally:
            if self._start:
                self._start.close()


def _keeping_in(directory: Path) -> watchdog.Keeping:
    """Return the paths in a run directory that a watchdog needs to save the server's data."""
    paths = (str(directory / name) for name in (PLAN, SERVER, SERVER_LOCK))
    return watchdog.Keeping(*paths)


def _restore_dump(directory: Path, folder: Path) -> bool:
    """Copy the Redis dump saved from a run to `folder`, for the server that starts there next.

    Waits until the earlier coordinator's watchdog has saved it, with a limit. Returns False if
    there is no dump or it cannot be read; the latter is logged.
    """
    keeping = _keeping_in(directory)
    try:
        _await_watchdog(keeping)
        shutil.copy(keeping.dump, folder / watchdog.DUMP)
    except FileNotFoundError:
        return False
    except OSError as error:
        LOG.warning("the last results of workers cannot be read: %s", error)
        return False
    return True


def _forget_workers(url: str) -> None:
    """Delete the heartbeats and queues of earlier workers from Redis: all of them have ended.

    Raises StoreUnreachable, StoreError.
    """
    with connect(url, _REPLY_S) as client:
        wire = Wire(client)
        for name in wire.names():
            wire.forget(decoded_text(name))


def _await_watchdog(keeping: watchdog.Keeping) -> None:
    deadline = time.monotonic() + _WATCHDOG_S
    while (lock := keeping.take_lock()) is None:
        if time.monotonic() > deadline:
            LOG.warning("the watchdog of the earlier coordinator is still cleaning up")
            return
        time.sleep(_POLL_S)
    os.close(lock)
