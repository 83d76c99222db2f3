"""The command `use`: sets or prints the deployment record that commands use by default."""

from __future__ import annotations

import click

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.results.storage.run_directory import RunDirectory


@click.command()
@click.argument("name", required=False)
@with_settings
def use(settings: CommandSettings, name: str | None) -> None:
    """Choose the deployment record that commands use by default.

    NAME is the name of a record; without it, the record in use is printed. A run needs no such
    choice: commands take the id of a run, its beginning, or "last", which most of them take by
    default.

    \b
    Examples:
      osbench-coord use
      osbench-coord use lab
    """
    if name is None:
        used = settings.deployments.used()
        echo(f"Deployment in use: {used or 'none; `osbench-coord use NAME` chooses one'}")
        echo(f"Last run: {_last_run(settings) or 'none'}")
        return
    runs = [one.path.name for one in RunDirectory.all(settings.conf.data_dir)]
    if name not in settings.deployments.names() and (name in runs or name == "last"):
        raise UsageError(
            f"{name} is a run, and only deployments are put into use; name the run itself, as in "
            f"`osbench-coord sla {name}`"
        )
    settings.deployments.use(name)
    echo(f"Deployment {name} is now in use.")


def _last_run(settings: CommandSettings) -> str:
    found = [one.path.name for one in RunDirectory.all(settings.conf.data_dir)]
    return found[-1] if found else ""
