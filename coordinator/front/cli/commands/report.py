"""The command `report`: writes a run in one format or several."""

from __future__ import annotations

import click

from osbench.common.errors import DamagedRun, ExportError, OsbenchError, UsageError
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.export_options import FORMAT_RULES, FormatOptions
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import option_set, options
from osbench.coordinator.front.cli.options.shared_options import damaged_flag, plugin_paths
from osbench.coordinator.front.cli.run_views.damaged_runs import found_run
from osbench.coordinator.report.exporting import Export, failure_of
from osbench.coordinator.report.model.model import FINISHED, RUNNING
from osbench.coordinator.report.run_facts import RunFacts, read_facts
from osbench.coordinator.report.stored_run import StoredRun


@click.command(cls=RuledCommand, rules=FORMAT_RULES)
@click.argument("run", default="last")
@option_set(FormatOptions, "formats")
@options(plugin_path=plugin_paths("exporters"), damaged=damaged_flag())
@with_settings
def report(
    settings: CommandSettings,
    run: str,
    formats: FormatOptions,
    plugin_path: tuple[str, ...],
    damaged: bool,
) -> None:
    """Write the results of a run to files, or send them to a server.

    RUN is an id, the beginning of one, or "last", which is the default. `results` prints
    the same.

    TARGET of --export is a URL, a file if it ends like the file that the exporter writes, or else a
    folder. A run without results can be written as html, json and junit. Damaged run files are
    refused (exit code 3); use --damaged.

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
    exports = formats.wanted.chosen(settings.conf, plugin_path)
    facts = read_facts(directory)
    stored = StoredRun(directory, facts.summary) if facts.state == FINISHED else None
    problems = []
    for export in exports:
        try:
            echo(export.write(stored) if stored else _write_unfinished(export, facts), err=True)
        except DamagedRun:
            raise
        except OsbenchError as error:
            problems.append(str(error))
    if problems:
        raise ExportError("; ".join(problems))


def _write_unfinished(export: Export, facts: RunFacts) -> str:
    """Export a run without results, or its failure; return the exporter's message.

    Raises UsageError if the exporter needs results.
    """
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
        raise UsageError(f"{message}; {export.name} needs results, so give a finished run{hint}")
    return done
