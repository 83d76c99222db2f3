"""The command of `make chaos`: plays rounds, prints each, and stops at the first that fails."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click

from chaos.rounds import SUMS, Outcome, play
from chaos.schedule import schedule_of


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=click.IntRange(1), default=20, help="How many rounds to play.")
@click.option("--seed", type=int, default=None, help="Of the first round; by default a new one.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Rounds at the same time.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), default="build/chaos",
              help="Where the files of a failed round stay.")  # fmt: skip
@click.option("--go-on", is_flag=True, help="Play all rounds, whatever fails.")
@click.option("--one", is_flag=True, hidden=True, help="Play the round of the seed; print JSON.")
def main(rounds: int, seed: int | None, jobs: int, keep: Path, go_on: bool, one: bool) -> None:
    """Play rounds of random faults."""
    signal.signal(signal.SIGTERM, _leave)
    first = random.randrange(1_000_000) if seed is None else seed
    if one:
        click.echo(json.dumps(play(schedule_of(first), keep / f"seed-{first}").to_dict()))
        return
    click.echo(f"seeds {first} to {first + rounds - 1}")
    begun = time.monotonic()
    outcomes: list[Outcome] = []
    with contextlib.ExitStack() as stack:
        running: dict[int, subprocess.Popen[str]] = {}
        waiting = iter(range(first, first + rounds))
        while True:
            while len(running) < jobs and (go_on or not _failed(outcomes)):
                number = next(waiting, None)
                if number is None:
                    break
                click.echo(f"{number}: {schedule_of(number)}")
                running[number] = stack.enter_context(_playing(number, keep))
            if not running:
                break
            for number in [one for one, process in running.items() if process.poll() is not None]:
                outcome = _outcome(number, running.pop(number))
                outcomes.append(outcome)
                click.echo(f"{number}: {outcome}")
            time.sleep(0.05)
    _show(outcomes, time.monotonic() - begun)
    for outcome in _failed(outcomes):
        number = outcome.schedule.seed
        click.echo(f"replay: make chaos ROUNDS=1 SEED={number}   files: {keep}/seed-{number}")
    sys.exit(1 if _failed(outcomes) else 0)


@contextlib.contextmanager
def _playing(number: int, keep: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that plays a round; it ends all that it has started when it is terminated."""
    command = [sys.executable, "-m", "chaos", "--one", "--seed", str(number), "--keep", str(keep)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


def _outcome(number: int, process: subprocess.Popen[str]) -> Outcome:
    said, _ = process.communicate()
    if process.returncode:
        why = f"the round ended with exit code {process.returncode}"
        return Outcome(schedule=schedule_of(number), violations=[why])
    return Outcome.from_dict(schedule_of(number), json.loads(said.splitlines()[-1]))


def _failed(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.violations]


def _show(outcomes: list[Outcome], seconds: float) -> None:
    sums: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    for outcome in outcomes:
        sums.update(outcome.sums)
        kinds.update(fault.kind for fault in outcome.schedule.faults)
        codes.update(outcome.codes)
    click.echo(f"\n{len(outcomes)} rounds in {seconds:.0f} s, {len(_failed(outcomes))} failed")
    for name in SUMS:
        click.echo(f"  {name:13} {sums[name]:>9,}")
    click.echo("  exit codes    " + ", ".join(f"{code}: {codes[code]}" for code in sorted(codes)))
    click.echo("  faults        " + ", ".join(f"{one} {kinds[one]}" for one in sorted(kinds)))
    for why, count in Counter(why for one in outcomes for why in one.skipped).items():
        click.echo(f"  skipped {count} times: {why}")


def _leave(number: int, frame: object) -> NoReturn:
    # an exception, so that every process is ended on the way out
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
