"""Interface to comparisons of finished runs, which an optional package makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from osbench.common.plugin import entry_points
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_store import SharedRun

if TYPE_CHECKING:
    # of pages, which terminals do without
    from osbench.coordinator.report.html.page_assets import PageFrame

#: Prints how much repeated runs of a task differ. Raises UsageError, DamagedRun.
ShowSpread = Callable[[Sequence[RunDirectory], Console], None]


class ComparisonPages(Protocol):
    """HTML pages with comparisons and trends of finished runs; the class has no arguments."""

    def compare(
        self,
        data_dir: str,
        runs: tuple[RunDirectory, RunDirectory],
        shared: Iterable[SharedRun],
        frame: PageFrame,
    ) -> str:
        """Return the page that compares two runs, in any order; the earlier one is "before".

        Earlier runs of the same task in the data directory and `shared` show how much runs vary.
        Raises UsageError if a run has no results, or they cannot be compared.
        """

    def trend(
        self,
        data_dir: str,
        run: RunDirectory,
        alike: Iterable[RunDirectory],
        shared: Iterable[SharedRun],
        frame: PageFrame,
    ) -> str:
        """Return the page with the trend of `run`: percentiles of runs of its task and load.

        `alike`, `shared`: runs to choose from, oldest first. Raises UsageError if none of them had
        the requested load.
        """

    def policy(self) -> str:
        """Return the Content-Security-Policy of these pages."""


def spread_of_runs() -> ShowSpread:
    """Return the function that prints how much runs differ.

    It is the entry point `spread` of the group `osbench.comparison`. Raises PluginError if no
    package has it.
    """
    show: ShowSpread = entry_points.load_object("comparison", "spread")
    return show


def comparison_pages() -> ComparisonPages:
    """Return new pages of comparisons.

    Their class is the entry point `pages` of the group `osbench.comparison`. Raises PluginError if
    no package has it.
    """
    made: ComparisonPages = entry_points.load_object("comparison", "pages")()
    return made
