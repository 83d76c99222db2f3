"""The command `results`: the results of a run as text, JSON, CSV or Rally's JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import click
import yaml
from rich.console import Console

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.plugin.exporter import Exporter
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.blocks import Failure, decode_rows
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.outputs import SUMMED, show_iteration, show_summed
from osbench.coordinator.report.iterations_csv import CsvRows
from osbench.coordinator.report.rally import rally_json
from osbench.coordinator.report.summary_json import FORMAT, to_error_json
from osbench.coordinator.report.text import render
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.taskfile.schema_errors import validate

#: File of the run directory that holds the run's JSON object.
SUMMARY = "summary.json"


@click.command()
@click.argument("run", default="last")
@click.option("--json", "form", flag_value="json", help="Print the run as one JSON object.")
@click.option("--csv", "form", flag_value="csv", help="Print every iteration as a line of CSV.")
@click.option(
    "--rally-json",
    "form",
    flag_value="rally",
    help="Print the run in the format of Rally's report.",
)
@click.option(
    "--outputs",
    is_flag=False,
    flag_value=str(SUMMED),
    type=click.IntRange(min=SUMMED),
    metavar="[ITERATION]",
    help="Print the charts made by iterations: aggregated, or those of one ITERATION.",
)
@click.option(
    "--export",
    "exporter",
    metavar="NAME",
    help="Write files with an exporter, such as json or junit.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the files of --export; created if missing.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the exporter, its value in YAML; may be repeated.",
)
@click.option(
    "--plugin-path",
    multiple=True,
    metavar="PATH",
    help="Python file, or directory of them, to load exporters from.",
)
@with_settings
def results(
    settings: CommandSettings,
    run: str,
    form: str | None,
    outputs: int | None,
    exporter: str | None,
    folder: Path | None,
    options: tuple[str, ...],
    plugin_path: tuple[str, ...],
) -> None:
    """Print or export the results of a run.

    RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord results
      osbench-coord results 20260401 --json | jq .workloads[0].latency.service.ok.p99
      osbench-coord results last --csv > iterations.csv
      osbench-coord results last --rally-json > rally.json
      osbench-coord results last --outputs 17
      osbench-coord results last --export junit --to reports
    """
    if exporter and (form or outputs is not None):
        raise UsageError("--export writes files: it cannot be combined with options that print")
    if outputs is not None and form not in (None, "json"):
        raise UsageError(f"--outputs prints text or, with --json, JSON; not --{form}")
    if bool(exporter) != bool(folder) or (options and not exporter):
        raise UsageError("--export NAME and --to DIR need each other, --option needs both")
    try:
        directory = RunDirectory.find(str(settings.data_dir), run)
        if exporter and folder:
            plugins = Plugins((*settings.conf.coordinator.plugin_path, *plugin_path))
            chosen = _exporter(plugins, exporter, options)
            for path in _export(chosen, read_summary(directory), folder):
                click.echo(f"wrote {path}", err=True)
        elif outputs is not None:
            _print_charts(directory, outputs, as_json=form == "json")
        else:
            _print(directory, form)
    except OsbenchError as error:
        if form != "json":
            raise
        click.echo(json.dumps(to_error_json(error), indent=1))
        click.get_current_context().exit(error.exit_code)


def _print(directory: RunDirectory, form: str | None) -> None:
    if form == "csv":
        _print_rows(directory)
    elif form == "rally":
        rally_json.write(directory, read_summary(directory), sys.stdout)
    elif form == "json":
        click.echo(json.dumps(read_summary(directory), indent=1))
    else:
        render(read_summary(directory), Console())


def _print_charts(directory: RunDirectory, iteration: int, *, as_json: bool) -> None:
    if iteration == SUMMED:
        show_summed(read_summary(directory), as_json=as_json)
    else:
        show_iteration(directory, iteration, as_json=as_json)


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """The JSON object of a finished run. Raises UsageError if there is none that can be read."""
    path = directory.path / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(_unfinished(directory)) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    found = summary.get("format") if isinstance(summary, dict) else None
    if not isinstance(summary, dict) or found != FORMAT:
        raise UsageError(f"{path} has format {found}; this version of osbench reads {FORMAT}")
    return summary


def _unfinished(directory: RunDirectory) -> str:
    name = directory.path.name
    if directory.coordinator():
        return f"run {name} is still running; `osbench-coord status {name}` shows its progress"
    message = f"run {name} ended without a report: {failure.reason(directory)}"
    if any(directory.blocks()):
        message += f"; `osbench-coord results {name} --csv` prints the iterations it reported"
    return message


def _exporter(plugins: Plugins, name: str, options: tuple[str, ...]) -> Exporter:
    kind = cast(type[Exporter], plugins.get("exporter", name))
    config = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise UsageError(f"--option {option}: must be NAME=VALUE")
        try:
            config[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--option {option}: {value} is not YAML") from None
    problems = validate(config, kind.CONFIG_SCHEMA, "--option")
    if problems:
        raise UsageError("; ".join(map(str, problems)))
    return kind(config)


def _export(exporter: Exporter, summary: dict[str, Any], folder: Path) -> list[Path]:
    """Write the files that an exporter makes from a run; returns the paths. Raises UsageError."""
    try:
        files = dict(exporter.export(summary))
    except Exception as error:  # a plug-in's own code may raise anything
        raise UsageError(
            f"the exporter {exporter.NAME} raises {type(error).__name__}: {error}"
        ) from error
    for name in files:
        if name in (".", "..") or Path(name).name != name:
            raise UsageError(
                f"the exporter {exporter.NAME} returned an invalid file name: {name!r}"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            raw = content.encode("utf-8") if isinstance(content, str) else content
            (folder / name).write_bytes(raw)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None
    return [folder / name for name in files]


def _print_rows(directory: RunDirectory) -> None:
    rows = CsvRows(sys.stdout)
    for body in directory.blocks():
        failures = [
            Failure(number=number, etype=etype, message=message, traceback=traceback)
            for number, etype, message, traceback in body["failures"]
        ]
        if body["columns"]:
            columns = decode_rows(body["columns"])
            rows.write(body["workload"], body["incarnation"], columns, failures)
