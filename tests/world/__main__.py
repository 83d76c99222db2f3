"""Plays random schedules of simulated coordinators and workers: `make world`.

Each seed is a schedule: loads, workers, and 10 s of faults. Exit code 1 where one broke
something; the first seed of each kind is played again without one fault after another. With
`--without` the product lacks one of its rules (`each`: one after another), and the first seed
that shows it is told; exit code 1 where none does.
"""

from __future__ import annotations

import world.ports  # noqa: F401 - before anything imports osbench

# isort: split

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

from world.faults import FAULTS
from world.mutants import MUTANTS, without
from world.schedule import Played, played
from world.seeds import IN_SCENES
from world.tally import Tally

#: Schedules between two lines of progress.
LINE = 100
#: Until when runs have to be over where a rule is left out, seconds: most schedules take less, and
#: without it many never end.
SHOWN_S = 60.0


def findings_of(one: Played) -> str:
    """What a schedule broke, in a line."""
    return "; ".join(f"{found.kind} ({found.detail[-200:]})" for found in one.findings)


def reduced(one: Played, faults: Sequence[str] | None) -> tuple[str, ...]:
    """Faults of a seed that can be left out, so that it still breaks the same."""
    wanted, but = one.findings[0].kind, []
    for kind in one.kinds:
        found = played(one.seed, faults=faults, but=[*but, kind]).findings
        if any(each.kind == wanted for each in found):
            but.append(kind)
    return tuple(but)


def play_seed(given: tuple[int, Sequence[str] | None]) -> Played:
    """Play one seed, in a process of the pool."""
    seed, faults = given
    return played(seed, faults=faults)


def played_all(seeds: range, faults: Sequence[str] | None, jobs: int) -> Iterator[Played]:
    """All seeds, in their order, on some processes."""
    asked = ((seed, faults) for seed in seeds)
    if jobs == 1:
        yield from map(play_seed, asked)
        return
    with ProcessPoolExecutor(jobs) as pool:
        # not all at once: `map` would ask for every seed before the first is played
        while part := list(islice(asked, 20 * jobs)):
            yield from pool.map(play_seed, part)


def search(seeds: range, faults: Sequence[str] | None, jobs: int, table: Path | None) -> int:
    """Play seeds and print what breaks; how many seeds did."""
    tally, begun = Tally(seeds.start), time.perf_counter()
    firsts: dict[str, Played] = {}
    for at, one in enumerate(played_all(seeds, faults, jobs), 1):
        tally.add(one)
        if one.findings:
            print(f"seed {one.seed}: {findings_of(one)}", flush=True)
            firsts.setdefault(one.findings[0].kind, one)
        if at % LINE == 0:
            took_s = time.perf_counter() - begun
            print(f"{at} of {len(seeds)} schedules, {tally.broken} broken, {took_s:.0f} s")
    for kind, one in firsts.items():
        but = reduced(one, faults)
        left = [name for name in one.kinds if name not in but]
        print(f"{kind}: seed {one.seed} by {', '.join(left) or 'none'}; --but {' '.join(but)}")
    print(tally.text())
    if table is not None:
        table.write_text(tally.page(), encoding="utf-8")
    return tally.broken


def shown(name: str, seeds: range) -> Played | None:
    """The first seed that breaks something without a rule, and nothing with it.

    Those that stand behind it are left out both times.
    """
    faults, behind = MUTANTS[name].faults, MUTANTS[name].behind
    for seed in seeds:
        with without(name, *behind):
            found = played(seed, faults=faults, over_s=SHOWN_S)
        if found.findings:
            with without(*behind):
                kept = played(seed, faults=faults, over_s=SHOWN_S)
            if not kept.findings:
                return found
    return None


def leave_out(name: str, seeds: range) -> bool:
    """Print which seed shows a rule; False where one should and none does."""
    rule, begun = MUTANTS[name], time.perf_counter()
    found = shown(name, seeds)
    if found is not None:
        said = f"seed {found.seed}: {findings_of(found)[:90]}"
    else:
        why = rule.unseen or (f"{IN_SCENES[name].__name__} shows it" if name in IN_SCENES else "")
        said = f"not shown in {len(seeds)} schedules" + (f": {why}" if why else "")
    print(f"{name:24} {time.perf_counter() - begun:6.1f} s  {said}", flush=True)
    return found is not None or bool(rule.unseen) or name in IN_SCENES


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; the exit code says whether all is as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m world", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many schedules are played")
    parser.add_argument("--first", type=int, default=1, help="seed of the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes that play")
    parser.add_argument("--faults", nargs="*", choices=FAULTS, help="these instead of random ones")
    parser.add_argument("--but", nargs="*", default=[], choices=FAULTS, help="not these of them")
    parser.add_argument("--without", choices=["each", *MUTANTS], help="leave a rule out")
    parser.add_argument("--trace", action="store_true", help="print all that happens in the first")
    parser.add_argument("--table", type=Path, help="write what was played to a page")
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + given.seeds)
    if given.trace:
        one = played(given.first, faults=given.faults, but=given.but, trace=True)
        print("\n".join(one.trace))
        print(f"seed {one.seed}: {findings_of(one) or 'nothing broke'}")
        return int(bool(one.findings))
    if given.without is not None:
        names = list(MUTANTS) if given.without == "each" else [given.without]
        return int(sum([not leave_out(name, seeds) for name in names]) > 0)
    return int(search(seeds, given.faults, given.jobs, given.table) > 0)


if __name__ == "__main__":
    sys.exit(main())
