"""The command `import`: results of Rally as runs."""

from __future__ import annotations

from pathlib import Path

import click

from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.report.rally.rally_import import import_file


@click.command("import")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@with_settings
def import_(settings: CommandSettings, files: tuple[Path, ...]) -> None:
    """Make runs of results that Rally has written.

    FILE is what `rally task report --json` writes; the ids of the runs are printed. Such a run can
    be shown, exported and compared like others. Hooks are not imported. Rally does not say when
    iterations were due: each counts as due when it started.

    \b
    Examples:
      osbench-coord import rally.json
      osbench-coord compare 20260401-101500-ab12 last
    """
    for path in files:
        for run in import_file(path, settings.conf.data_dir, settings.conf.benchmark.lag_limit_s):
            click.echo(run)
