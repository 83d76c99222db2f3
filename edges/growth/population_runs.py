"""Runs a task at several populations of its service, the least first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from osbench.common.errors import INTERRUPTED, OsbenchError
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.base import CommandSettings
from osbench.coordinator.front.cli.one_run import Interrupts, Wanted
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.repeated_runs import run_tagged
from osbench.coordinator.load.run.plan import new_run_id
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.growth.population import Populating
from osbench.edges.growth.request_figures import MeasuredRun, read_run

#: Exit code if no iteration of a run succeeded.
_NOTHING = 1


class PopulationRuns:
    """Brings a service to each population and runs a task there, one or more rounds."""

    def __init__(
        self,
        settings: CommandSettings,
        wanted: Callable[[int], Wanted],
        populating: Populating,
        progress: Progress,
    ) -> None:
        """`wanted` returns the request for the runs at a population."""
        self._settings = settings
        self._wanted = wanted
        self._populating = populating
        self._progress = progress
        self._interrupts = Interrupts()
        #: Common tag of all runs.
        self.tag = f"grow-{new_run_id()}"
        #: The complete runs so far, in their order.
        self.runs: list[MeasuredRun] = []
        #: Error that ended them before the last; None without one.
        self.failure: OsbenchError | None = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM came meanwhile; then no further run begins."""
        return self._interrupts.count > 0

    def run(self, populations: Sequence[int], rounds: int) -> None:
        """Make `rounds` runs at each population, until an interrupt or an error.

        An interrupted run does not count. An error is kept in `failure` if runs were complete
        before it. Raises OsbenchError if none was.
        """
        with self._interrupts.noted():
            try:
                for population in populations:
                    if not self._run_at(population, rounds):
                        return
            except OsbenchError as error:
                if not self.runs:
                    raise
                self.failure = error

    def _run_at(self, population: int, rounds: int) -> bool:
        """Make the runs at one population; return False if they were interrupted."""
        title = f"population {count(population)}"
        self._progress.say(f"{title}: {self._populating.option}")
        if not self._populating.populate(
            population,
            lambda: self.interrupted,
            lambda line: self._progress.say(f"{title}: {line}"),
        ):
            return False
        for number in range(1, rounds + 1):
            if self.interrupted:
                return False
            which = f", run {number} of {rounds}" if rounds > 1 else ""
            self._progress.say(f"{title}: measuring{which}")
            report = run_tagged(
                self._settings,
                self._wanted(population),
                self._progress,
                self._interrupts,
                self.tag,
                f"{self.tag}-{population}",
            )
            if report.exit_code == INTERRUPTED:
                return False
            directory = RunDirectory.find(str(self._settings.conf.data_dir), report.run_id)
            run = read_run(report, directory, population)
            if not run.ok:
                raise _without_iterations(run)
            self.runs.append(run)
        return not self.interrupted


def _without_iterations(run: MeasuredRun) -> OsbenchError:
    error = OsbenchError(
        f"no iteration succeeded at a population of {count(run.population)};"
        f" `osbench-coord results {run.run_id}` shows the errors"
    )
    error.exit_code = _NOTHING
    return error


def with_population(wanted: Wanted, argument: str, population: int) -> Wanted:
    """Return a request whose template argument `argument` is the population; "" for none."""
    if not argument:
        return wanted
    options = wanted.options
    given = (*options.task_args, f"{argument}={population}")
    return replace(wanted, options=replace(options, task_args=given))
