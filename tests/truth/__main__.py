"""The command of `make truth`: plays cases one after another and prints a row for each."""

from __future__ import annotations

import sys
import time

import click

from truth.case import Case, Row, examine
from truth.cases import CASES

#: Width of the first column: the longest name.
_WIDTH = max(map(len, CASES))


@click.command(context_settings={"show_default": True})
@click.argument("names", nargs=-1, metavar="[CASE ...]")
@click.option("--list", "only_list", is_flag=True, help="Print the cases and play none.")
def main(names: tuple[str, ...], only_list: bool) -> None:
    """Plant known causes and values, run osbench, and compare what it prints with what is right.

    Without CASE all cases are played, one after another, in about fifteen minutes. Each is a run in
    local mode with its own home. A row says what was planted, the right values, and what was
    printed; `!!` marks what is wrong. The exit code is 1 if a case is wrong.

    Other programs that use the cores change what is late: play cases on an idle machine.
    """
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise click.UsageError(f"no case {', '.join(unknown)}; --list prints all")
    chosen = [CASES[name] for name in names] or list(CASES.values())
    if only_list:
        for case in chosen:
            click.echo(f"{case.name:{_WIDTH}}  {case.planted}\n{'':{_WIDTH}}  right: {case.right}")
        return
    begun = time.monotonic()
    rows = [_played(case) for case in chosen]
    wrong = [row.case.name for row in rows if not row.is_right]
    click.echo(f"\n{len(rows)} cases in {time.monotonic() - begun:.0f} s, {len(wrong)} wrong")
    if wrong:
        click.echo(f"again: make truth CASES={' '.join(wrong)!r}")
    sys.exit(1 if wrong else 0)


def _played(case: Case) -> Row:
    """Play a case and print its row."""
    row = examine(case)
    verdict = "right" if row.is_right else "WRONG"
    click.echo(f"{case.name:{_WIDTH}}  {verdict}  planted: {case.planted}")
    click.echo(f"{'':{_WIDTH}}         right:   {case.right}")
    click.echo(f"{'':{_WIDTH}}         printed: {row.printed}")
    return row


if __name__ == "__main__":
    main()
