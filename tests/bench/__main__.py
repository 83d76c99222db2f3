"""The command of `make bench`: chooses rows, measures them, prints the table, writes JSON."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import click
from rich.console import Console

from bench import machine, table
from bench.comparison import Comparison
from bench.rows import (
    authenticate,
    client,
    commands,
    core,
    cpu,
    explain,
    footprint,
    http,
    ingest,
    keystone,
    killed,
    lag,
    live,
    memory,
    noop,
    otlp,
    rally,
    report,
    resting,
    scale,
    start,
    traced,
    traces,
    users,
)
from bench.stage import Stage

ROWS: dict[str, ModuleType] = {
    "noop": noop,
    "cpu": cpu,
    "traced": traced,
    "traces": traces,
    "explain": explain,
    "commands": commands,
    "lag": lag,
    "users": users,
    "footprint": footprint,
    "live": live,
    "ingest": ingest,
    "otlp": otlp,
    "memory": memory,
    "http": http,
    "core": core,
    "keystone": keystone,
    "client": client,
    "rally": rally,
    "authenticate": authenticate,
    "resting": resting,
    "killed": killed,
    "report": report,
    "start": start,
    "scale": scale,
}

#: Columns of the table where there is no terminal.
_WIDE = 150


def _chosen(context: click.Context, parameter: click.Parameter, names: str) -> list[str]:
    found = list(ROWS) if names == "all" else [name for name in names.split(",") if name]
    unknown = [name for name in found if name not in ROWS]
    if unknown or not found:
        raise click.BadParameter(f"{', '.join(unknown) or 'none'}; there are {', '.join(ROWS)}")
    return found


@click.command(context_settings={"show_default": True})
@click.option("--peers", type=click.Path(exists=True, path_type=Path), required=True,
              help="Interpreter of the environment with the peers.")  # fmt: skip
@click.option("--rows", default="all", callback=_chosen, help="Names with commas between, or all.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each is measured.")
@click.option("--block", "block_s", type=click.FloatRange(1), default=5.0,
              help="Length of one measurement, seconds.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File for JSON.")
def main(peers: Path, rows: list[str], rounds: int, block_s: float, output: Path | None) -> None:
    """Measure osbench beside its peers and print the table."""
    signal.signal(signal.SIGTERM, _leave)
    about = machine.describe(peers)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
    found: list[Comparison] = []
    left_out: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name in rows:
        hint = machine.missing(ROWS[name].NEEDS)
        if hint:
            left_out[name] = hint
            continue
        _say(name)("begins")
        before, others = machine.load(), machine.OtherPrograms()
        try:
            found += _measured(name, peers.absolute(), rounds, block_s)
        except Exception as error:  # noqa: BLE001 - a row that fails leaves the others
            traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {error}"
        about["load"][name] = [before, machine.load()]
        about["others"][name] = others.cores()
        if output:
            # after each row, so that an end half way loses one at most
            document = table.to_json(found, left_out=left_out, failed=failed, machine=about)
            output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    _show(found, left_out, failed, about)
    sys.exit(1 if failed else 0)


def _measured(name: str, peers: Path, rounds: int, block_s: float) -> list[Comparison]:
    # a folder a row: what one leaves must not weigh on the next
    with tempfile.TemporaryDirectory(prefix="osb-") as folder:
        stage = Stage(folder=Path(folder).resolve(), peers=peers, rounds=rounds, block_s=block_s)
        comparisons: list[Comparison] = ROWS[name].measure(stage, _say(name))
        return comparisons


def _show(
    found: list[Comparison],
    left_out: dict[str, str],
    failed: dict[str, str],
    about: dict[str, object],
) -> None:
    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False)
    if found:
        console.print(table.to_table(found, machine.disturbed_rows(about)))
    console.print(table.footer(about))
    for name, hint in left_out.items():
        console.print(f"{name} is left out; to measure it: {hint}")
    for name, why in failed.items():
        console.print(f"{name} could not be measured: {why}")


def _say(row: str) -> Callable[[str], None]:
    return lambda text: click.echo(f"{row}: {text}", err=True)


def _leave(number: int, frame: object) -> NoReturn:
    # an exception, so that every child is ended on the way out
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
