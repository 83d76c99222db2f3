"""The command of `make mutants`: draws mutants, searches with layers of tests, prints a table."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click

from mutants.checkout import checkout
from mutants.import_graph import ImportGraph
from mutants.layers import LAYERS, NEAR
from mutants.mutant import Mutant, drawn
from mutants.search import Search
from mutants.table import rows, share, totals

#: Part of the mutants which `make test-all` finds that `make test` has to find.
WANTED = 0.9


@click.command(context_settings={"show_default": True})
@click.argument("seeds", nargs=-1, type=int, metavar="[SEED ...]")
@click.option("--count", type=click.IntRange(1), default=20, help="Mutants of each seed.")
@click.option(
    "--until", type=click.Choice([NEAR, *LAYERS]), default="test", help="Last layer to run."
)
@click.option("--from", "earlier", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Go on with the mutants of this file.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
              default="build/mutants.json", help="Where to write the results.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=2, help="Processes that run a whole layer.")
def main(
    seeds: tuple[int, ...], count: int, until: str, earlier: Path | None, output: Path, jobs: int
) -> None:
    """Draw random changes of the product, and print which layer of tests finds each.

    The mutants are those of HEAD, in a temporary worktree; so are the tests. Layers run until a
    mutant is found: tests that import the changed module, `make test`, `make test-all`. Seeds that
    are given together share the runs of whole layers.

    With --from, mutants that earlier commits found count as found; a layer runs again for the
    others if HEAD has changed. The exit code is 1 if `make test` finds less than 90 % of what
    `make test-all` finds.
    """
    signal.signal(signal.SIGTERM, _leave)
    repository = Path(_git("rev-parse", "--show-toplevel"))
    output.parent.mkdir(parents=True, exist_ok=True)
    with checkout(repository) as tree:
        if earlier:
            mutants = [Mutant(**fields) for fields in json.loads(earlier.read_text("utf-8"))]
        else:
            chosen = seeds or (random.randrange(1_000_000),)
            mutants = [mutant for seed in chosen for mutant in drawn(tree.root, seed, count)]

        def save() -> None:
            fates = [mutant.to_dict() for mutant in mutants]
            output.write_text(json.dumps(fates, indent=1), "utf-8")

        save()
        commit = _git("-C", str(tree.root), "rev-parse", "HEAD")
        search = Search(checkout=tree, commit=commit, tell=_tell, save=save, jobs=jobs)
        search.near(mutants, ImportGraph(tree.root))
        for name in [] if until == NEAR else list(LAYERS)[: list(LAYERS).index(until) + 1]:
            missing = [path for suite in LAYERS[name] for path in suite.paths
                       if not (tree.root / path).exists()]  # fmt: skip
            if missing:
                raise click.ClickException(f"layer {name}: HEAD has no {', '.join(missing)}")
            search.layer(name, LAYERS[name], mutants)
    for line in (*rows(mutants), "", *totals(mutants)):
        click.echo(line)
    part = share(mutants)
    sys.exit(1 if part is not None and part < WANTED else 0)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _leave(number: int, frame: object) -> NoReturn:
    # an exception, so that the worktree is removed on the way out
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
