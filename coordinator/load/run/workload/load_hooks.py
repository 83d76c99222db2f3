"""The hooks of one workload under load: fires them, journals their results, waits for their end."""

from __future__ import annotations

import contextlib
import json
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from osbench.common.errors import StorageError, StoreUnreachable
from osbench.common.plugin.plugins import Plugins
from osbench.common.ports import clock as time
from osbench.coordinator.formatting import count
from osbench.coordinator.load.run.plan import WorkloadPlan
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.plugins.hooks.executor import KEPT, ActiveHook, HookReport

LOG = logging.getLogger(__name__)

#: Longest wait at the end for running hooks, and for hooks that were asked to stop.
HOOKS_S = 60.0
HOOKS_STOP_S = 5.0
#: Seconds after which a message reports that they are awaited.
HOOKS_SAID_S = 3.0


class LoadHooks:
    """Fires the hooks of one workload when they are due, and journals firings and results."""

    def __init__(
        self, services: RunServices, one: WorkloadPlan, plugins: Plugins, run_id: str
    ) -> None:
        self._services = services
        self._name = one.name
        self._number = one.number
        #: Phases of a drill, by the places of the hooks that begin them.
        self._phases = {
            place: phase
            for place, hook in enumerate(one.workload.hooks)
            for phase, label in one.workload.phases.items()
            if hook.label == label
        }
        self._elapsed_s = 0.0
        self._hooks = [
            ActiveHook(
                described,
                plugins,
                run_id,
                partial(self._note, place),
                services.history.hook_results(one.number, place).seen,
            )
            for place, described in enumerate(one.workload.hooks)
        ]

    def _note(self, place: int, firing: dict[str, Any]) -> None:
        """Journal that a hook is about to fire, so that a resumed run does not fire it again.

        `place`: index of the hook in the task; `firing`: fields of the record. A hook that begins a
        phase of a drill also journals that phase. Raises StorageError.
        """
        records = [{"do": "hook", "workload": self._number, "hook": place, **firing}]
        if place in self._phases:
            records.append({**self._phase(place), "at_s": self._elapsed_s})
        self._services.port.decide(records)

    def _phase(self, place: int) -> dict[str, Any]:
        return {"do": "phase", "workload": self._number, "phase": self._phases[place]}

    def look(self, elapsed_s: float, reported: int) -> None:
        """Fire the hooks that are due, each in a thread, and journal the results of ended ones.

        `elapsed_s`: seconds after t0; `reported`: iterations that have run. Raises StorageError.
        """
        self._elapsed_s = elapsed_s
        for hook in self._hooks:
            hook.look(elapsed_s, reported)
        self._journal()

    def _journal(self) -> None:
        """Journal the results of actions that have ended, and the failures of a drill's phases.

        Raises StorageError; the report has the results even then.
        """
        port, ended = self._services.port, False
        phases = []
        for place, hook in enumerate(self._hooks):
            for result, times in hook.take():
                # messages of plug-ins may have characters that msgpack refuses
                event = {"hook": place, "times": times, "result": json.dumps(asdict(result))}
                port.note({"do": "fired", "workload": self._number, **event})
                ended = True
                if place in self._phases:
                    error = result.error.msg if result.error is not None else ""
                    phases.append({**self._phase(place), "error": error})
        if ended:
            port.decide(phases)

    @property
    def _running(self) -> int:
        return sum(len(hook.running()) for hook in self._hooks)

    def stop(self) -> None:
        """Ask all running actions to end, and journal ended ones; does not wait.

        A failure to journal is ignored.
        """
        for hook in self._hooks:
            hook.stop()
        # on a full disk, the run ends for that
        with contextlib.suppress(StorageError):
            self._journal()

    def end(self, patient: Callable[[], bool]) -> None:
        """Wait for running actions while `patient` returns true, then ask them to end.

        Waits at most HOOKS_S seconds before, and HOOKS_STOP_S after; logs that it waits. Journals
        their results. Raises StorageError.
        """
        self._await(HOOKS_S, patient)
        for hook in self._hooks:
            hook.stop()
        self._await(HOOKS_STOP_S, lambda: True)
        self._journal()

    def _await(self, longest_s: float, patient: Callable[[], bool]) -> None:
        begun, said = time.monotonic(), False
        while self._running and patient() and time.monotonic() < begun + longest_s:
            if not said and time.monotonic() >= begun + HOOKS_SAID_S:
                said = True
                LOG.warning(
                    "%s: the load is over; waiting up to %g s for %s that have not ended; Ctrl-C "
                    "ends them",
                    self._name,
                    longest_s,
                    count(self._running, "hook action"),
                )
            with contextlib.suppress(StoreUnreachable):
                self._services.pool.poll()
            time.sleep(0.1)

    def report(self) -> tuple[HookReport, ...]:
        """Return a report per hook, in the order of the task; running actions count as failed.

        A report has at most `KEPT` results, and the counts of all by status.
        """
        return tuple(self._report(place, hook) for place, hook in enumerate(self._hooks))

    def _report(self, place: int, hook: ActiveHook) -> HookReport:
        known, pending = self._services.history.hook_results(self._number, place), hook.pending()
        counts = Counter(known.counts)
        for result, times in pending:
            counts[result.status] += times
        results = [*known.results, *(result for result, _ in pending)]
        results.sort(key=lambda result: result.event.value)
        return HookReport(
            hook=hook.described, results=tuple(results[:KEPT]), counts=dict(sorted(counts.items()))
        )
