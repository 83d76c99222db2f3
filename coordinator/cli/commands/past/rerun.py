"""The command `rerun`: the same task, arguments and options once more."""

from __future__ import annotations

import click

from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.commands.run import end
from osbench.coordinator.cli.export_options import ExportOptions, run_export_options
from osbench.coordinator.cli.one_run import rerun_once
from osbench.coordinator.cli.progress_display import Progress
from osbench.coordinator.cli.run_exports import RunExports
from osbench.coordinator.run.plan import new_run_id
from osbench.coordinator.storage.run_directory import RunDirectory


@click.command()
@click.argument("run", default="last")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the report.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
@run_export_options
@with_settings
def rerun(
    settings: CommandSettings,
    run: str,
    quiet: bool,
    as_json: bool,
    wanted_exports: ExportOptions,
) -> None:
    """Run the task of a run again, with the same arguments and options.

    This makes a new run. The task is as it was rendered then; plug-ins, data files, the
    configuration and the deployment record of that name are read again. RUN is an id, the beginning
    of one, or "last", which is the default. Exit codes are those of `run`.

    \b
    Examples:
      osbench-coord rerun
      osbench-coord rerun 20260401 --report report.html
    """
    before = RunDirectory.find(settings.conf.data_dir, run)
    progress = Progress(quiet=quiet)
    run_id = new_run_id()
    exports = RunExports(
        wanted_exports.chosen(settings.conf, ()),
        RunDirectory.of(settings.conf.data_dir, run_id),
        progress.say,
        wanted_exports.metrics or settings.conf.coordinator.metrics_address,
    )
    with exports.around():
        summary = rerun_once(settings, before, progress, run_id)
    end(summary, exports, as_json=as_json)
