"""The option `--damaged`: reads runs whose files are cut or changed, as far as possible."""

from __future__ import annotations

from osbench.common.text.escaping import one_line
from osbench.coordinator.front.cli.base import CommandSettings, echo
from osbench.coordinator.results.storage.run_directory import RunDirectory


def found_run(settings: CommandSettings, name: str, *, damaged: bool) -> RunDirectory:
    """Return the directory of a run: its id, the beginning of one, or "last".

    `damaged`: faults of its files are printed to stderr and accepted. Raises UsageError.
    """
    directory = RunDirectory.find(str(settings.data_dir), name)
    if damaged:
        warn_of(directory.accept_damage())
    return directory


def warn_of(note: str) -> None:
    """Print a warning to stderr; nothing if `note` is ""."""
    if note:
        echo(one_line(f"Warning: {note}"), err=True)
