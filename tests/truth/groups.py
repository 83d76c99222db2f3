"""Plants a slow step in groups of steps at once, of shapes drawn at random; counts how it is named.

Nothing waits: rows of iterations are made, and explained as those of a run.
"""

from __future__ import annotations

import argparse
from collections import Counter

from helpers.planted_groups import ALONE, BESIDE, MISSED, verdict


def main() -> None:
    """Print each cause that was not named alone, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--first", type=int, default=530_000, help="first seed")
    wanted = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(wanted.first, wanted.first + wanted.rounds):
        shape, found, named = verdict(seed)
        counts[found] += 1
        if found != ALONE:
            print(f"seed {seed}: {shape.cause} {found}: {named}; {shape}", flush=True)
    print(", ".join(f"{counts[one]} of {wanted.rounds} {one}" for one in (ALONE, BESIDE, MISSED)))


if __name__ == "__main__":
    main()
