"""The command `cleanup`: undoes what the contexts of a run have left."""

from __future__ import annotations

from pathlib import Path

import click

from osbench.common.errors import ContextError
from osbench.common.plugins import Plugins
from osbench.coordinator.cli.common import Settings, with_settings
from osbench.coordinator.contexts.chain import undo
from osbench.coordinator.contexts.objects import Objects
from osbench.coordinator.report.exit_codes import LEFT_BEHIND
from osbench.coordinator.rundir import RunDirectory


@click.command()
@click.argument("run")
@click.option(
    "--plugin-path",
    multiple=True,
    metavar="PATH",
    help="Python file, or directory of them, to load plug-ins from.",
)
@with_settings
def cleanup(settings: Settings, run: str, plugin_path: tuple[str, ...]) -> None:
    """Undo what the contexts of a run have left behind.

    That is what they could not undo, or did not come to, as where the coordinator was killed.
    RUN is an id, the beginning of one, or "last". The exit code is 5 where something is left.

    \b
    Examples:
      osbench-coord cleanup last
      osbench-coord cleanup 20260401 --plugin-path plugins/
    """
    directory = RunDirectory.find(str(settings.data_dir), run)
    directory.lock()
    try:
        objects = Objects.load(directory.path, Path(settings.data_dir))
        count = len(objects.entries)
        plugins = Plugins((*settings.conf.coordinator.plugin_path, *plugin_path))
        problems = undo(objects, plugins)
    finally:
        directory.close()
    word = "context" if count == 1 else "contexts"
    click.echo(f"run {directory.path.name}: {count - len(problems)} of {count} {word} undone")
    if problems:
        error = ContextError("\n".join(problems))
        error.exit_code = LEFT_BEHIND
        raise error
