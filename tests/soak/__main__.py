"""The command of `make soak`: runs a load, samples, fits, prints a table; fails where it grows."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.table import Table

from bench.stage import Stage
from soak.growth import fit, grows
from soak.long_run import LongRun, long_run
from soak.sampling import Sampler, Series, limit_of

#: Samples of a run, at least: a short one is sampled more often than every `EVERY_S`.
SAMPLES = 120
EVERY_S = 10.0


@click.command(context_settings={"show_default": True})
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), default=2.0,
              help="Length of the run.")  # fmt: skip
@click.option("--rate", type=click.FloatRange(min=1), default=50.0,
              help="Iterations a second of each of its two workloads.")  # fmt: skip
@click.option("--speed", type=click.FloatRange(min=1), default=1.0,
              help="How many times as often as usual heartbeats and polls come.")  # fmt: skip
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default="build/soak",
              help="Folder for the samples and the result.")  # fmt: skip
def main(hours: float, rate: float, speed: float, output: Path) -> None:
    """Run a load for hours and see that nothing grows with time."""
    signal.signal(signal.SIGTERM, _leave)
    output.mkdir(parents=True, exist_ok=True)
    seconds = hours * 3600
    every_s = min(EVERY_S, seconds / SAMPLES)
    with tempfile.TemporaryDirectory(prefix="osb-") as folder:
        stage = Stage(
            folder=Path(folder).resolve(), peers=Path(sys.executable), rounds=1, block_s=60
        )
        with long_run(stage, seconds, rate, speed) as run:
            series = _watched(run, seconds, every_s, output / "samples.csv")
            result = run.result()
        disk = sum(
            path.stat().st_size for path in (stage.data / "runs").rglob("*") if path.is_file()
        )
    rows = list(_judged(series))
    (output / "result.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    _show(rows, series, result, disk)
    sys.exit(1 if any(row["grows"] for row in rows) else 0)


def _watched(run: LongRun, seconds: float, every_s: float, path: Path) -> Series:
    client = run.redis.client()
    sampler = Sampler(run.processes, client, run.stream)
    end = time.monotonic() + seconds - 2 * every_s
    following = time.monotonic()
    while run.under_way and time.monotonic() < end:
        sampler.sample()
        sampler.series.write(path)
        following += every_s
        time.sleep(max(0.0, following - time.monotonic()))
    client.close()
    return sampler.series


def _judged(series: Series) -> Iterator[dict[str, Any]]:
    for name, values in series.whole():
        slope = fit(series.times_s, values)
        yield {
            "name": name,
            "first": values[0],
            "last": values[-1],
            "most": max(values),
            "growth": slope.growth,
            "error": slope.error,
            "limit": limit_of(name),
            "grows": grows(slope, limit_of(name)),
        }


def _show(rows: list[dict[str, Any]], series: Series, result: dict[str, Any], disk: int) -> None:
    table = Table()
    for name in ("series", "first", "last", "most", "growth", "+-", "limit", ""):
        table.add_column(name, justify="left" if name in ("series", "") else "right")
    for row in rows:
        numbers = [f"{row[key]:,.2f}" for key in ("first", "last", "most", "growth", "error")]
        table.add_row(row["name"], *numbers, f"{row['limit']:g}", "GROWS" if row["grows"] else "")
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False, markup=False)
    console.print(table)
    sums = [one["accounting"] for one in result["workloads"]]
    planned = sum(one["planned"] for one in sums)
    settled = sum(one["ok"] + one["failed"] for one in sums)
    lost = sum(one["lost"] + one["dropped"] + one["not_started"] for one in sums)
    console.print(
        f"{series.times_s[-1] / 3600:.2f} h, {len(series.times_s)} samples; growth is that after "
        f"the first fifth, with its 95 % interval"
    )
    console.print(
        f"{settled:,} of {planned:,} iterations ok or failed, {lost:,} lost or dropped; "
        f"{disk / max(1, settled):.1f} bytes on disk for each"
    )


def _leave(number: int, frame: object) -> NoReturn:
    # an exception, so that every process is ended on the way out
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
