"""The command of `make chaos`: plays rounds, prints each, and stops at the first that fails."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NoReturn

import click

from chaos.rounds import Outcome, play
from chaos.schedule import schedule_of
from helpers.judge import STATES


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=click.IntRange(1), default=20, help="How many rounds to play.")
@click.option("--seed", type=int, default=None, help="Of the first round; by default a new one.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Rounds at the same time.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), default="build/chaos",
              help="Where the files of a failed round stay.")  # fmt: skip
@click.option("--go-on", is_flag=True, help="Play all rounds, whatever fails.")
def main(rounds: int, seed: int | None, jobs: int, keep: Path, go_on: bool) -> None:
    """Play rounds of random faults."""
    signal.signal(signal.SIGTERM, _leave)
    first = random.randrange(1_000_000) if seed is None else seed
    click.echo(f"seeds {first} to {first + rounds - 1}")
    begun = time.monotonic()
    outcomes: list[Outcome] = []
    failed: list[Outcome] = []
    waiting = iter(range(first, first + rounds))
    with ThreadPoolExecutor(jobs) as pool:
        running: set[Future[Outcome]] = set()
        while True:
            while len(running) < jobs and (go_on or not failed):
                number = next(waiting, None)
                if number is None:
                    break
                schedule = schedule_of(number)
                click.echo(f"{number}: {schedule}")
                running.add(pool.submit(play, schedule, keep / f"seed-{number}"))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                outcome = one.result()
                outcomes.append(outcome)
                click.echo(f"{outcome.schedule.seed}: {outcome}")
                if outcome.violations:
                    failed.append(outcome)
    _show(outcomes, failed, time.monotonic() - begun)
    for outcome in failed:
        number = outcome.schedule.seed
        click.echo(f"replay: make chaos ROUNDS=1 SEED={number}   files: {keep}/seed-{number}")
    sys.exit(1 if failed else 0)


def _show(outcomes: list[Outcome], failed: list[Outcome], seconds: float) -> None:
    sums: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    for outcome in outcomes:
        sums.update(outcome.sums)
        kinds.update(fault.kind for fault in outcome.schedule.faults)
        codes.update(outcome.codes)
    click.echo(f"\n{len(outcomes)} rounds in {seconds:.0f} s, {len(failed)} failed")
    for name in ("planned", *STATES, "reruns"):
        click.echo(f"  {name:12} {sums[name]:>9,}")
    click.echo("  exit codes   " + ", ".join(f"{code}: {codes[code]}" for code in sorted(codes)))
    click.echo("  faults       " + ", ".join(f"{one} {kinds[one]}" for one in sorted(kinds)))
    for why, count in Counter(why for one in outcomes for why in one.skipped).items():
        click.echo(f"  skipped {count} times: {why}")


def _leave(number: int, frame: object) -> NoReturn:
    # an exception, so that every process is ended on the way out
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
