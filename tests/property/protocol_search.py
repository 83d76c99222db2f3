"""Plays many schedules of the protocol's model and tells what they broke: `make protocol`.

Without `--without` all rules are kept, and nothing may break: exit code 1 where something did. With
it one rule is left out (`each`: one after another), and the first seeds that show it are told: exit
code 1 where a rule was not shown, unless `NOT_SHOWN` names it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from property.protocol_model.faults import BEYOND, FAULTS
from property.protocol_model.rules import NOT_SHOWN, RULES
from property.protocol_model.world import broken


def broken_seeds(
    seeds: range, without: Sequence[str], faults: Sequence[str] | None
) -> Iterator[tuple[int, Counter[str]]]:
    """Seeds that break something, and what."""
    for seed in seeds:
        found = broken(seed, without=without, faults=faults)
        if found:
            yield seed, found


def search(
    seeds: range, without: Sequence[str], faults: Sequence[str] | None, limit: int | None
) -> int:
    """Print what breaks, at most `limit` seeds of it; how many seeds broke something."""
    kinds: Counter[str] = Counter()
    shown, last = [], seeds.start - 1
    for last, found in broken_seeds(seeds, without, faults):
        kinds.update(found.keys())
        shown.append(last)
        print(f"  seed {last}: {dict(found)}", flush=True)
        if limit is not None and len(shown) >= limit:
            break
    else:
        last = seeds.stop - 1
    name = f"without {', '.join(without)}" if without else "all rules"
    played = last - seeds.start + 1
    print(f"{name}: {len(shown)} of {played} schedules broken {dict(kinds)}", flush=True)
    return len(shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Search; the exit code says whether what was found is what should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many schedules are played")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--without", choices=["each", *RULES], help="leave a rule out")
    parser.add_argument("--faults", nargs="+", choices=[*FAULTS, *BEYOND], help="only these")
    parser.add_argument("--limit", type=int, help="end after as many broken schedules")
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + given.seeds)
    if given.without is None:
        return int(search(seeds, [], given.faults, given.limit) > 0)
    missing = [
        rule
        for rule in (RULES if given.without == "each" else [given.without])
        if not search(seeds, [rule], given.faults, given.limit) and rule not in NOT_SHOWN
    ]
    if missing:
        print(f"not shown necessary: {', '.join(missing)}")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
