"""The command `report`: writes a run in one format or several."""

from __future__ import annotations

import click

from osbench.common.errors import DamagedRun, ExportError, OsbenchError, UsageError
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.export_options import ExportOptions, export_options
from osbench.coordinator.cli.run_views.damaged_runs import damaged_option, found_run
from osbench.coordinator.report.exporting import Export, failure_of
from osbench.coordinator.report.run_facts import FINISHED, RUNNING, RunFacts, read_facts
from osbench.coordinator.report.stored_run import StoredRun


@click.command()
@click.argument("run", default="last")
@export_options
@click.option(
    "--plugin-path",
    multiple=True,
    metavar="PATH",
    help="Python file, or directory of them, to load exporters from.",
)
@damaged_option
@with_settings
def report(
    settings: CommandSettings,
    run: str,
    wanted: ExportOptions,
    plugin_path: tuple[str, ...],
    damaged: bool,
) -> None:
    """Write the results of a run to files, or send them to a server.

    RUN is an id, the beginning of one, or "last", which is the default. `results` prints the same.

    With --export, TARGET is a file, if it ends like the file that the exporter writes, else a
    folder; or a URL. Of a run without results, html, json and junit can be written. A run whose
    files are not as it has left them is refused with exit code 3.

    \b
    Examples:
      osbench-coord report --html report.html
      osbench-coord report 20260401 --junit junit.xml --csv iterations.csv
      osbench-coord report last --hdr latency.hlog --option time=response
      osbench-coord report last --export opensearch=https://search.example:9200
      osbench-coord report last --export otlp=http://localhost:4318 --export csv=tables
      osbench-coord report last --export mine --to reports --plugin-path exporters
    """
    directory = found_run(settings, run, damaged=damaged)
    exports = wanted.chosen(settings.conf, plugin_path)
    if not exports:
        raise UsageError("nothing is asked for; try `report --html report.html`, or --help")
    facts = read_facts(directory)
    stored = StoredRun(directory, facts.summary) if facts.state == FINISHED else None
    problems = []
    for export in exports:
        try:
            click.echo(export.write(stored) if stored else _unfinished(export, facts), err=True)
        except DamagedRun:
            raise
        except OsbenchError as error:
            problems.append(str(error))
    if problems:
        raise ExportError("; ".join(problems))


def _unfinished(export: Export, facts: RunFacts) -> str:
    """Export a run that has no results. Raises UsageError where that cannot be done."""
    if facts.state == RUNNING:
        message = f"run {facts.run_id} is still running"
        done = export.write_unfinished(facts.directory)
    else:
        message = f"run {facts.run_id} ended without results: {facts.reason}"
        failure = failure_of(facts.reason, facts.summary["exit_code"], facts.manifest)
        done = export.write_unfinished(facts.directory) or export.write_failure(failure)
    if not done:
        rows = f"; `osbench-coord results {facts.run_id} --csv` prints the iterations so far"
        hint = rows if export.name == "csv" else ""
        raise UsageError(f"{message}; {export.name} needs them{hint}")
    return done
