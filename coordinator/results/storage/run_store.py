"""Interface to a store of runs that a team shares: an archive, which an optional package opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from osbench.common.plugin import entry_points
from osbench.coordinator.results.storage.run_directory import RunDirectory


class SharedRun(Protocol):
    """A run in a store; its files are fetched when they are needed."""

    @property
    def run_id(self) -> str:
        """Return the run's id."""

    def row(self) -> dict[str, Any]:
        """Return its row of a list, as of `run_listing.row_of`."""

    def fetch(self) -> RunDirectory:
        """Return the run's files, after downloading them if they are missing.

        Raises ArchiveError, StorageError.
        """


class RunStore(Protocol):
    """The runs of a store: lists them, and takes others.

    The class has the arguments of `open_store`; it is the entry point `archive` of the group
    `osbench.run_store`.
    """

    @property
    def place(self) -> str:
        """Return the folder or URL of the store, without secrets."""

    def emptiness(self) -> str:
        """Return a message why the store has no run. Raises ArchiveError."""

    def ids(self) -> set[str]:
        """Return the ids of all runs. Raises ArchiveError if the store cannot be listed."""

    def runs(self) -> Sequence[SharedRun]:
        """Return all runs, oldest first. Raises ArchiveError if the store cannot be read."""

    def push(self, directory: RunDirectory) -> bool:
        """Store a run that has ended; return False if the store has it already.

        Raises UsageError, DamagedRun, StorageError, ArchiveError.
        """


def open_store(url: str, data_dir: str, warn: Callable[[str], None]) -> RunStore:
    """Return the store at a path or URL, which is not read yet.

    `data_dir`: folder of runs and of cached ones. `warn` is called with messages on unreadable
    parts. Raises UsageError for an invalid URL, ArchiveError, PluginError if no package opens
    stores.
    """
    store: RunStore = entry_points.load_object("run_store", "archive")(url, data_dir, warn)
    return store
