"""Archives of runs, as commands use them: opened at a URL, searched together with local runs."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.front.cli.base import CommandSettings
from osbench.coordinator.front.cli.run_views.damaged_runs import warn_of
from osbench.coordinator.results.storage.run_directory import RunDirectory, run_id_of
from osbench.edges.history.archives.run_archive import ArchivedRun, RunArchive


def archive_at(settings: CommandSettings, url: str) -> RunArchive:
    """Return the archive at a path or URL; it prints its warnings to stderr.

    Raises UsageError for a bad URL, ArchiveError if it cannot be opened.
    """
    return RunArchive(url, str(settings.data_dir), warn_of)


def archived_runs(settings: CommandSettings, url: str | None) -> list[ArchivedRun]:
    """Return the runs of the archive at `url`, oldest first; [] if `url` is None.

    Prints a warning if the archive has no runs. Raises UsageError, ArchiveError.
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
    """Return the directory of the run that a name means, among local and archived runs.

    A local run goes first; an archived one is fetched. The name is an id, its beginning, or "last".
    Raises UsageError if none or several fit, and the errors of `ArchivedRun.fetch`.
    """
    data_dir = str(settings.data_dir)
    here = {one.path.name: one for one in RunDirectory.all(data_dir)}
    there = {one.run_id: one for one in archived}
    place = f"{settings.data_dir / 'runs'} and the archive"
    found = run_id_of(name, sorted({*here, *there}), place)
    return here[found] if found in here else there[found].fetch()
