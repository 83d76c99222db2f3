"""All watchers of a run: found by entry point, their failures kept from the run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from osbench.common.errors import OsbenchError, Superseded, UsageError
from osbench.common.plugin import entry_points
from osbench.common.plugin.sla import SpanFigures, SpanSelection
from osbench.common.secrets.masking import error_text
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.load.run.watcher import Findings, WatchedRun, Watcher
from osbench.coordinator.results.accounting.load_span import load_spans
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome

LOG = logging.getLogger(__name__)


class Watchers:
    """The watchers of one run, in their order of collection, without watchers that have failed."""

    def __init__(self, plan: RunPlan, *, resumed: bool) -> None:
        """Find the installed watchers that the run asks for.

        Raises UsageError if one is missing or set wrongly, PluginError if it cannot be imported.
        """
        self._watchers: dict[str, Watcher] = {}
        #: Messages on watchers that failed.
        self._failures: list[str] = []
        names = entry_points.names("watcher")
        for name, option in _options(plan).items():
            if name not in names:
                raise UsageError(
                    f"{option} needs the watcher {name}, which is not installed; install osbench "
                    "with it, or leave the option out"
                )
        kinds = {name: entry_points.load_object("watcher", name) for name in names}
        try:
            for name in _collection_order(kinds):
                watcher = kinds[name].of(plan, resumed=resumed)
                if watcher is not None:
                    self._watchers[name] = watcher
        except BaseException:
            self.end(resumable=resumed)
            raise

    def begin(self, run: WatchedRun) -> list[str]:
        """Begin to watch; return the messages for the user, on failures too. Raises UsageError."""
        said = []
        for name, watcher in list(self._watchers.items()):
            try:
                said.append(watcher.begin(run))
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - its failure is a note
                said.append(self._fail(name, error))
        return [sentence for sentence in said if sentence]

    def look(self, outcomes: Sequence[WorkloadOutcome]) -> dict[str, str]:
        """Pass the loads so far to all; return the present troubles by name of the watcher.

        A failure is a trouble once. Raises Superseded if another coordinator has the run.
        """
        if not self._watchers:
            return {}
        loads, troubles = load_spans(outcomes), {}
        for name, watcher in list(self._watchers.items()):
            try:
                troubles[name] = watcher.look(loads)
            except Superseded:
                raise
            except Exception as error:  # noqa: BLE001 - its failure is a note
                troubles[name] = self._fail(name, error)
        return {name: trouble for name, trouble in troubles.items() if trouble}

    def load_over(self) -> None:
        """Report the end of the load to all."""
        for name, watcher in list(self._watchers.items()):
            try:
                watcher.load_over()
            except Exception as error:  # noqa: BLE001 - its failure is a note
                self._fail(name, error)

    def collect(
        self,
        outcomes: Sequence[WorkloadOutcome],
        selections: Mapping[int, Sequence[SpanSelection]],
    ) -> Findings:
        """Collect the findings of all: each gets the outcomes with the facts of the earlier ones.

        Notes on failures come last. Raises Superseded if another coordinator has the run.
        """
        spans: dict[int, Sequence[SpanFigures]] = {}
        notes: list[str] = []
        for name, watcher in list(self._watchers.items()):
            try:
                found = watcher.collect(outcomes, selections)
            except Superseded:
                raise
            except Exception as error:  # noqa: BLE001 - its failure is a note
                self._fail(name, error)
                continue
            outcomes = found.outcomes
            spans.update(found.spans)
            notes += found.notes
        return Findings(outcomes=outcomes, spans=spans, notes=(*notes, *self._failures))

    def end(self, *, resumable: bool) -> None:
        """Release all; failures are logged, and a second call does nothing."""
        watchers, self._watchers = self._watchers, {}
        for name, watcher in watchers.items():
            try:
                watcher.end(resumable=resumable)
            except Exception as error:  # noqa: BLE001 - its failure is a note
                LOG.warning("%s could not be ended: %s", name, error_text(error))

    def _fail(self, name: str, error: Exception) -> str:
        if isinstance(error, OsbenchError):
            LOG.warning("%s: %s", name, error)
        else:
            LOG.exception("%s failed", name)
        watcher = self._watchers.pop(name)
        said = f"{name}: no findings after its failure: {error_text(error)}"
        self._failures.append(said)
        try:
            watcher.end(resumable=True)
        except Exception:
            LOG.exception("%s could not be ended", name)
        return said


def _options(plan: RunPlan) -> dict[str, str]:
    """Return the options of the run that need a watcher, one for each, by name of the watcher.

    Options are declared here, so that help and configuration need no watcher.
    """
    options = {
        "counters": [("[metrics] prometheus", plan.conf.metrics.prometheus)],
        "traces": [
            ("--otlp or [traces] otlp_listen", plan.otlp_address),
            ("--traces-from or [traces] query_url", plan.query_url),
        ],
    }
    asked = {name: [option for option, value in given if value] for name, given in options.items()}
    return {name: found[0] for name, found in asked.items() if found}


def _collection_order(kinds: Mapping[str, type[Watcher]]) -> list[str]:
    """Return watchers' names, each after the watchers in its `AFTER`, otherwise by name.

    Watchers in a circle, and all that come after a circle, are last.
    """
    ordered: list[str] = []
    left = sorted(kinds)
    while left:
        ready = [one for one in left if not set(kinds[one].AFTER) & set(left)]
        # a circle: by name
        ordered += ready or left
        left = [one for one in left if one not in ordered]
    return ordered
