"""Starts the worker processes of a host and keeps them running."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from oslo_config import cfg

from osbench.common.errors import UsageError
from osbench.common.machine.cpu_quota import usable_cores
from osbench.common.text.escaping import decoded_text, escaped
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import resting
from osbench.worker.process.forked_process import ForkedProcess, can_fork
from osbench.worker.process.leave_request import LeaveRequest

if TYPE_CHECKING:
    from osbench.worker.process.supervisor_life import SupervisorLife
    from osbench.worker.process.will_sender import WillSender

LOG = logging.getLogger(__name__)

#: A process that exits sooner than this after its start is not replaced: the next one would fail,
#: too. One that was killed is replaced, but not sooner than this after its start.
SHORTEST_LIFE_S = 5.0
#: How long a supervisor that ends tries to send the wills of killed processes, seconds.
FAREWELL_S = 3.0
#: How long a process has beyond `[worker] drain_timeout_s` before it is killed, seconds.
KILL_S = 5.0
#: Age of worker processes at which their supervisor rests: short runs end without that program.
REST_AGE_S = 2.0
#: -P keeps the working directory, which could hide modules, out of the import path.
CHILD_COMMAND = (sys.executable, "-P", "-m", "osbench.worker.main")


def process_count(conf: cfg.ConfigOpts) -> int:
    """Return how many worker processes this host is to have: as configured, else one per core."""
    return int(conf.worker.processes or usable_cores())


@dataclass(kw_only=True)
class _Child:
    """A worker process of the supervisor, its pipe for errors, and its page of taken work."""

    process: subprocess.Popen[bytes] | ForkedProcess
    #: When it was started, monotonic.
    started: float
    #: Pipe for the error of a failed start; the process closes its end when it has started.
    complaints: int
    #: On which it notes the work that it takes.
    page: WillPage
    message: bytes = b""
    starting: bool = True

    def listen(self) -> None:
        """Read the error of a failed start from the pipe, without waiting.

        The end of the pipe means that the process has started or ended: the pipe is closed.
        """
        while self.starting:
            try:
                data = os.read(self.complaints, 4096)
            except BlockingIOError:
                return
            self.message += data
            if not data:
                self.close()

    def close(self) -> None:
        """Close the pipe, if it is still open."""
        if self.starting:
            self.starting = False
            os.close(self.complaints)


def _adopt(pid: int, started: float, page: int) -> _Child:
    """Return a worker process that ran while its supervisor was at rest."""
    process, kept = ForkedProcess.adopt(pid), WillPage(page)
    return _Child(process=process, started=started, complaints=-1, page=kept, starting=False)


class Supervisor:
    """Keeps a number of worker processes running: a process that ends is replaced by a new one.

    A process that exits within `SHORTEST_LIFE_S`, or by the code of a usage error (2), is not
    replaced; a process killed by a signal always is. Without any left `run` ends.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        config_files: Sequence[str],
        plugin_paths: Sequence[str],
        private: bool = False,
        life: SupervisorLife | None = None,
        serve: Callable[[Sequence[str]], object] | None = None,
        rested: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the options of processes. `private`: local mode, whose server ends with them.

        `life` reports to health checks. `config_files` and `plugin_paths` go to the processes as
        options. `serve(arguments)` runs a worker process in a fork; with None programs are started.
        `rested`: the state with which it went to rest, if it did.
        """
        self._conf = conf
        self._config_files = config_files
        self._plugin_paths = plugin_paths
        self._private = private
        self._life = life
        self._serve = serve
        self._rested = rested
        self._leave = LeaveRequest()
        #: Both ends of a pipe; worker processes drain when its second one is closed.
        self._lifeline: Sequence[int] = ()
        self._children: list[_Child] = []
        #: Errors of failed starts, with their count, until all starts have succeeded or failed.
        self._unreported: Counter[str] = Counter()
        #: When processes are to be started, monotonic.
        self._due: list[float] = []
        self._wills: WillSender | None = None

    def run(self) -> int:
        """Keep the worker processes running until SIGTERM or SIGINT, then drain them and return 0.

        Once no process runs or is to be started, returns the exit code of a failed one, or 1 for 0.
        At the end sends wills for at most `FAREWELL_S`. Raises UsageError for a wrong or taken
        `[worker] metrics_address`.
        """
        rested = self._rested
        self._lifeline = rested["lifeline"] if rested else os.pipe()
        self._children = [_adopt(*child) for child in rested["children"]] if rested else []
        self._due = [] if rested else [time.monotonic()] * process_count(self._conf)
        self._leave.on_signals()
        # ignored, it would lose the exit codes
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # the end of a rest has blocked them
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD))
        try:
            with self._metrics():
                code = self._supervise()
            if self._wills is not None:
                self._wills.flush(FAREWELL_S)
            return code
        finally:
            # closing the lifeline makes remaining processes drain
            for descriptor in self._lifeline:
                os.close(descriptor)

    def _metrics(self) -> contextlib.AbstractContextManager[object]:
        listen = self._conf.worker.metrics_address
        if not listen:
            return contextlib.nullcontext()
        # few have an endpoint, and these take a while to import
        from osbench.common.machine.metrics_endpoint import metrics_endpoint  # noqa: PLC0415 - see above
        from osbench.worker.process.worker_metrics import worker_metrics  # noqa: PLC0415 - see above

        return metrics_endpoint(listen, lambda: worker_metrics(self._conf))

    def _supervise(self) -> int:
        failed = 0
        while True:
            self._tell("running")
            failed = self._reap() or failed
            self._start_due()
            # a process that has reported an error may not have exited yet
            if not any(child.starting or child.message for child in self._children):
                self._report_failures()
            if not self._children and not self._due:
                return failed
            if self._may_rest():
                self._rest()
            if self._leave.wait(0.2):
                self._report_failures()
                return self._stop()

    def _may_rest(self) -> bool:
        """Return whether all that is left to do is to wait for the end of processes."""
        since = time.monotonic() - REST_AGE_S
        return (
            self._serve is not None
            and not self._due
            and not self._conf.worker.metrics_address
            and self._wills is None
            and (self._life is None or not self._life.has_manager)
            and not any(child.starting or child.started > since for child in self._children)
        )

    def _rest(self) -> None:
        """Continue as `resting`, in the same process; returns if the end was requested."""
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
        if not self._leave.wait(0):
            state = {
                "children": [[one.process.pid, one.started, one.page.fd] for one in self._children],
                "lifeline": self._lifeline,
                "drain_s": self._conf.worker.drain_timeout_s + KILL_S,
                "life": self._life and self._life.record.handover(),
            }
            resting.begin(state, [*CHILD_COMMAND, *sys.argv[1:]])

    def _tell(self, state: str) -> None:
        if self._life is not None:
            self._life.tell(state)

    def _reap(self) -> int:
        """Remove processes that have exited, send their wills, and schedule replacements.

        Returns the exit code of a process that is not replaced, 1 for a code of 0; 0 if all are.
        Its error message, if any, is stored for `_report_failures`.
        """
        failed = 0
        ended = [child for child in self._children if child.process.poll() is not None]
        for child in self._children:
            child.listen()
        for child in ended:
            self._children.remove(child)
            child.close()
            self._bequeath(child)
            code, lived_s = child.process.returncode or 0, time.monotonic() - child.started
            why = decoded_text(child.message)
            how = f"worker process {child.process.pid} ended ({code}) after {lived_s:.1f} s"
            # a usage error would occur again, however late it was detected
            if code == UsageError.exit_code or (code >= 0 and lived_s < SHORTEST_LIFE_S):
                failed = failed or code or 1
                if why:
                    self._unreported[why] += 1
                else:
                    LOG.warning("%s: it is not replaced", how)
            elif not self._leave.wait(0):
                LOG.warning("%s: a new process is started", f"{how}: {why}" if why else how)
                self._due.append(child.started + SHORTEST_LIFE_S)
        return failed

    def _bequeath(self, child: _Child) -> None:
        """Send the will of a process that has ended, if it was in a run; close its page.

        The will reports the iterations that it cannot have started; a thread sends it.
        """
        will = child.page.read()
        child.page.close()
        if will is None:
            return
        if self._wills is None:
            # most supervisors never need it, and it needs modules that take a while to import
            from osbench.worker.process.will_sender import WillSender  # noqa: PLC0415 - see above

            self._wills = WillSender(self._conf)
        self._wills.send(will)

    def _report_failures(self) -> None:
        for why, count in self._unreported.items():
            share = f"{count} of {process_count(self._conf)} worker processes"
            click.echo(
                escaped(f"osbench-worker: {why} ({share}; not replaced)", breaks=True), err=True
            )
        self._unreported.clear()

    def _start_due(self) -> None:
        now = time.monotonic()
        for _ in [at for at in self._due if at <= now]:
            self._start()
        self._due = [at for at in self._due if at > now]

    def _start(self) -> None:
        worker = self._conf.worker
        complaints, pipe = os.pipe()
        os.set_blocking(complaints, False)
        page = WillPage.create()
        lifeline = self._lifeline[0]
        arguments = ["--lifeline", str(lifeline), "--complaints", str(pipe)]
        arguments += ["--page", str(page.fd)]
        for path in self._config_files:
            arguments += ["--config-file", path]
        for path in self._plugin_paths:
            arguments += ["--plugin-path", path]
        arguments += ["--virtual-users", str(worker.virtual_users), "--label", worker.label]
        if self._private:
            arguments.append("--private")
        process = self._begin(arguments, (lifeline, pipe, page.fd))
        os.close(pipe)
        self._children.append(
            _Child(process=process, started=time.monotonic(), complaints=complaints, page=page)
        )

    def _begin(
        self, arguments: Sequence[str], pass_fds: Sequence[int]
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        """Start a worker process in its own process group, which Ctrl-C does not reach.

        Forks after the imports of a process if no other thread runs, else starts a program.
        `pass_fds` stay open in it.
        """
        # a thread may hold a lock that the new process would wait for
        if self._serve is not None and can_fork():
            # what it imports takes a second, and only a supervisor that starts processes needs it
            from osbench.worker.process.prepared_start import import_modules  # noqa: PLC0415 - see above

            import_modules()
            return ForkedProcess(self._serve, arguments, pass_fds)
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [*CHILD_COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            pass_fds=pass_fds,
            process_group=0,
        )

    def _stop(self) -> int:
        for child in self._children:
            child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self._conf.worker.drain_timeout_s + KILL_S
        for child in self._children:
            self._await_end(child.process, deadline)
            self._bequeath(child)
        return 0

    def _await_end(self, process: subprocess.Popen[bytes] | ForkedProcess, deadline: float) -> None:
        while time.monotonic() < deadline:
            self._tell("draining")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, min(1.0, deadline - time.monotonic())))
                return
        process.kill()
        process.wait()
