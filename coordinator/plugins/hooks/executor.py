"""Fires the hooks of a workload, each time in a new thread, and hands out their results."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from osbench.common import task
from osbench.common.errors import OsbenchError
from osbench.common.plugin import hook
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.trigger import Trigger
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.secrets.masking import mask, mask_text
from osbench.coordinator.plugins.hooks import action_output

LOG = logging.getLogger(__name__)

#: Concurrent threads of one hook; firings beyond them fail.
AT_ONCE = 16
#: Results of one hook that are kept; its counts include all of them.
KEPT = 1000
#: Characters of a message and of a traceback.
MESSAGE, DETAILS = 1000, 8000

SUCCESS, FAILED, REFUSED = "success", "failed", "validation_failed"


@dataclass(frozen=True, kw_only=True)
class Error:
    """The reason why a firing failed: type of the exception, message and traceback.

    Message and traceback are masked and cut.
    """

    etype: str
    msg: str
    details: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one firing of a hook: its status, times, error and output."""

    status: str
    event: hook.Event
    #: Seconds since 1970-01-01 UTC; None if it was not started, or has not ended.
    started_at: float | None = None
    finished_at: float | None = None
    error: Error | None = None
    output: dict[str, Any] | None = None

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Result:
        """Return a result from the mapping that `dataclasses.asdict` made of it."""
        error = Error(**saved["error"]) if saved["error"] else None
        return cls(**{**saved, "event": hook.Event(**saved["event"]), "error": error})


#: A result, and the number of firings that had it.
Counted = tuple[Result, int]


@dataclass(frozen=True, kw_only=True)
class HookReport:
    """A hook of a workload with its first results, and counts of all, for the report."""

    hook: task.HookConfig
    #: The first ones, at most `KEPT`, in the order of their events.
    results: tuple[Result, ...]
    #: All of them, by status.
    counts: dict[str, int]

    def failure(self) -> str:
        """Return a message with the count of failed firings and the reason of the first.

        "" if none failed.
        """
        firings = sum(self.counts.values())
        failed = firings - self.counts.get(SUCCESS, 0)
        if not failed:
            return ""
        why = next((result.error.msg for result in self.results if result.error), "it did not end")
        return f"hook {self.hook.action.name}: {failed} of {firings} firings failed: {why}"


class Firing:
    """An execution of a hook's action, in a new daemon thread that starts at once.

    An exception of the action is in its result. Raises RuntimeError if no thread can be started.
    """

    def __init__(self, kind: type[hook.Hook], config: Any, event: hook.Event) -> None:
        #: None while it runs.
        self.result: Result | None = None
        self.event = event
        self._started_at = time.time()
        self._kind = kind
        self._config = config
        self._action: hook.Hook | None = None
        self._stopping = False
        name = f"hook-{kind.NAME}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Call the action's `stop` in another thread, without waiting for it.

        An action that has not begun does not run any more. An exception is logged.
        """
        self._stopping = True
        threading.Thread(target=self._stop, name="hook-stop", daemon=True).start()

    def _stop(self) -> None:
        try:
            if self._action is not None:
                self._action.stop()
        except Exception:  # a plug-in's own code may raise anything
            LOG.warning("hook %s cannot be stopped", self._kind.NAME, exc_info=True)

    def so_far(self) -> Result:
        """Return the result; a firing that has not ended has a failed one, of type NotEnded."""
        if self.result is not None:
            return self.result
        error = Error(etype="NotEnded", msg="had not ended when the workload was over")
        return Result(status=FAILED, event=self.event, started_at=self._started_at, error=error)

    def _run(self) -> None:
        status, error, found = SUCCESS, None, None
        try:
            self._action = self._kind(self._config)
            if self._stopping:
                raise hook.Failed("not run: the workload was over; fire it earlier", etype="NotRun")
            found = self._action.run(self.event)
        except hook.Failed as failure:
            details = mask_text(failure.details)[-DETAILS:]
            status, found = failure.status, failure.output
            error = Error(etype=failure.etype, msg=_error_message(failure), details=details)
        except BaseException as failure:  # noqa: BLE001 - a plug-in's own code may raise anything
            details = mask_text(traceback.format_exc())[-DETAILS:]
            etype = type(failure).__name__
            status, error = FAILED, Error(etype=etype, msg=_error_message(failure), details=details)
        kept = None
        try:
            kept = mask(action_output.checked_output(found)) if found is not None else None
        except Exception as failure:  # noqa: BLE001 - the output is a plug-in's, too
            status = REFUSED
            error = Error(etype=type(failure).__name__, msg=_error_message(failure))
        self.result = Result(
            status=status,
            event=self.event,
            started_at=self._started_at,
            finished_at=time.time(),
            error=error,
            output=kept,
        )


class ActiveHook:
    """A hook of a workload under load: its trigger, its action, and the firings so far.

    Its methods do not wait for actions and do not raise their exceptions. Iterations are counted
    when their results arrive, some tenths of a second after they end, and not when they start.
    """

    def __init__(
        self,
        described: task.HookConfig,
        plugins: Plugins,
        run: str = "",
        note: Callable[[dict[str, Any]], None] = lambda firing: None,
        seen: int = -1,
    ) -> None:
        """`run` is the run's id, for the events of actions; `described`, the hook in the task.

        `note` is called with the firings before they are done, to journal them. `seen`: the value
        to which another coordinator has evaluated the trigger, -1 for none. A trigger that raises
        is recorded as a failure.
        """
        self.described = described
        self._run = run
        self._note = note
        self._kind = cast(type[hook.Hook], plugins.get("hook", described.action.name))
        trigger = cast(type[Trigger], plugins.get("trigger", described.trigger.name))
        self._seen = seen
        self._firings: list[Firing] = []
        #: Results that were not handed out, and how many were kept in all.
        self._ended: list[Counted] = []
        self._kept = 0
        #: None after it has raised: the hook is not fired any more.
        self._trigger: Trigger | None = None
        self._unit = "time"
        with self._guard(0):
            made = trigger(described.trigger.config)
            self._trigger, self._unit = made, made.unit

    def look(self, elapsed_s: float, reported: int) -> None:
        """Fire for all values due since the last call: seconds of load, or iterations reported.

        The trigger's unit decides which. At most `AT_ONCE` firings run at the same time; further
        ones fail. A trigger that raises is recorded as a failure and not used again.
        """
        now = int(elapsed_s) if self._unit == "time" else reported
        if now <= self._seen or self._trigger is None:
            return
        due: Sequence[int] = ()
        with self._guard(now):
            due = self._trigger.due(self._seen, now)
        self._seen = now
        if due:
            room = max(0, AT_ONCE - len(self.running()))
            # on disk before it is done: killed in between, it is not done, and never done twice
            self._note({"unit": self._unit, "values": list(due[:room]), "seen": now})
            for value in due[:room]:
                self._fire(self._event(value))
            self._refuse(due[room:])

    def running(self) -> list[Firing]:
        """Return the firings that have not ended."""
        return [firing for firing in self._firings if firing.result is None]

    def stop(self) -> None:
        """Ask all running actions to end; does not wait for them."""
        for firing in self.running():
            firing.stop()

    def take(self) -> list[Counted]:
        """Return the results since the last call, each with its count of firings; logs failures."""
        over = [firing for firing in self._firings if firing.result is not None]
        self._firings = [firing for firing in self._firings if firing not in over]
        for firing in over:
            self._log_failure(firing.so_far())
            self._keep(firing.so_far())
        found, self._ended = self._ended, []
        return found

    def pending(self) -> list[Counted]:
        """Return the results that `take` has not; running firings count as failed."""
        return [*self._ended, *((firing.so_far(), 1) for firing in self._firings)]

    def _event(self, value: int) -> hook.Event:
        return hook.Event(unit=self._unit, value=value, run=self._run)

    @contextlib.contextmanager
    def _guard(self, value: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a plug-in's own code may raise anything
            self._trigger = None
            what = "" if isinstance(error, OsbenchError) else f" raises {type(error).__name__}"
            message = f"the trigger{what}: {_error_message(error)}"
            LOG.warning("hook %s: %s", self.described.action.name, message)
            self._keep(_unstarted_result(self._event(value), message))

    def _fire(self, event: hook.Event) -> None:
        try:
            self._firings.append(Firing(self._kind, self.described.action.config, event))
        except RuntimeError as error:  # the system has no more threads
            self._keep(_unstarted_result(event, _error_message(error)))

    def _refuse(self, values: Sequence[int]) -> None:
        """Count the firings at `values` as failed, because `AT_ONCE` are running; logs it once.

        Makes results only up to `KEPT` in all, at least one; the last one counts for the rest.
        """
        if not values:
            return
        name = self.described.action.name
        message = f"not run: {AT_ONCE} firings of this hook were running"
        LOG.warning("hook %s (%s %d): %s", name, self._unit, values[0], message)
        described = values[: max(1, KEPT - self._kept)]
        for value in described[:-1]:
            self._keep(_unstarted_result(self._event(value), message))
        last = _unstarted_result(self._event(described[-1]), message)
        self._keep(last, 1 + len(values) - len(described))

    def _log_failure(self, result: Result) -> None:
        if result.error is not None:
            name, event = self.described.action.name, result.event
            LOG.warning("hook %s (%s %d): %s", name, event.unit, event.value, result.error.msg)

    def _keep(self, result: Result, times: int = 1) -> None:
        # results that no report shows are counted
        shown = result if self._kept < KEPT else replace(result, error=None, output=None)
        self._ended.append((shown, times))
        self._kept += 1


def _unstarted_result(event: hook.Event, message: str) -> Result:
    return Result(status=FAILED, event=event, error=Error(etype="NotRun", msg=message))


def _error_message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - str() of a plug-in's exception may raise
        text = type(error).__name__
    return mask_text(text)[:MESSAGE]
