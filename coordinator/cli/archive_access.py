"""Archives as commands use them: opened at a URL, with warnings on stderr; and runs of both."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.archives.run_archive import ArchivedRun, RunArchive
from osbench.coordinator.cli.base import CommandSettings
from osbench.coordinator.cli.run_views.damaged_runs import warn_of
from osbench.coordinator.storage.run_directory import RunDirectory, named


def archive_at(settings: CommandSettings, url: str) -> RunArchive:
    """The archive at a path or URL. Raises UsageError, ArchiveError."""
    return RunArchive(url, str(settings.data_dir), warn_of)


def archived_runs(settings: CommandSettings, url: str | None) -> list[ArchivedRun]:
    """The runs of the archive that was given, oldest first; none without one.

    Prints a warning for an archive without runs. Raises UsageError, ArchiveError.
    """
    if url is None:
        return []
    archive = archive_at(settings, url)
    found = archive.runs()
    if not found:
        warn_of(archive.emptiness())
    return found


def run_of_both(
    settings: CommandSettings, name: str, archived: Sequence[ArchivedRun]
) -> RunDirectory:
    """The run that a name means, of those here and in an archive; it is fetched from there.

    Raises UsageError, ArchiveError.
    """
    data_dir = str(settings.data_dir)
    here = {one.path.name: one for one in RunDirectory.all(data_dir)}
    there = {one.run_id: one for one in archived}
    place = f"{settings.data_dir / 'runs'} and the archive"
    found = named(name, sorted({*here, *there}), place)
    return here[found] if found in here else there[found].fetch()
