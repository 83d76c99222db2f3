"""A run whose files are cut or changed, as far as they can be read: `--damaged`."""

from __future__ import annotations

from osbench.common.escaping import escaped
from osbench.coordinator.cli.base import CommandSettings, echo
from osbench.coordinator.storage.run_directory import RunDirectory


def found_run(settings: CommandSettings, name: str, *, damaged: bool) -> RunDirectory:
    """Return the run of an id, of the beginning of an id, or the "last". Raises UsageError.

    `damaged`: faults of its files are printed and accepted.
    """
    directory = RunDirectory.find(str(settings.data_dir), name)
    if damaged:
        warn_of(directory.accept_damage())
    return directory


def warn_of(note: str) -> None:
    """Print the reason why an output is partial, if it is."""
    if note:
        echo(escaped(f"Warning: {note}"), err=True)
