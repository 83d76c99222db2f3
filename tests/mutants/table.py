"""The table of mutants and the layers that found them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mutants.layers import LAYERS, NEAR
from mutants.mutant import GONE, Mutant

#: Characters around a change that are shown, and of a shown change.
_AROUND = 24
_MOST = 60


def rows(mutants: Sequence[Mutant]) -> Iterator[str]:
    """Yield a row for each mutant, with its change in a second line."""
    places = [f"{mutant.path}:{mutant.line}" for mutant in mutants]
    width = max(map(len, places), default=0)
    for mutant, place in zip(mutants, places, strict=True):
        found = mutant.found_by or ("nobody" if mutant.survived else "not run")
        row = f"{mutant.name:>7}  {place:{width}}  {mutant.kind:10}  {found:8}  {mutant.test}"
        yield row.rstrip()
        before, after = change(mutant)
        yield f"{'':7}  {before}  ->  {after}"


def change(mutant: Mutant) -> tuple[str, str]:
    """Return the source around a change, before and after it, each in one line."""
    context = mutant.context.encode()
    before = context[: mutant.at].decode()[-_AROUND:]
    behind = context[mutant.at + mutant.length :].decode()[:_AROUND]
    replaced = context[mutant.at : mutant.at + mutant.length].decode()
    texts = [_short(before, text, behind) for text in (replaced, mutant.after)]
    return texts[0], texts[1]


def _short(before: str, text: str, behind: str) -> str:
    text = text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
    return " ".join(f"{before}{text}{behind}".split())


def totals(mutants: Sequence[Mutant]) -> Iterator[str]:
    """Yield a line for each seed, and for all seeds if there are several."""
    seeds = sorted({mutant.seed for mutant in mutants})
    for seed in seeds:
        yield f"seed {seed}: {_sums([one for one in mutants if one.seed == seed])}"
    if len(seeds) > 1:
        yield f"all seeds: {_sums(mutants)}"


def share(mutants: Sequence[Mutant]) -> float | None:
    """Return the part of the mutants found by any layer that `make test` finds, from 0 to 1.

    The tests near a module are among those of `make test`. None until all layers have run, or if no
    layer has found any.
    """
    last = list(LAYERS)[-1]
    if any(not mutant.found_by and last not in mutant.survived for mutant in mutants):
        return None
    found = [mutant.found_by for mutant in mutants if mutant.found_by not in ("", GONE)]
    return sum(layer in (NEAR, "test") for layer in found) / len(found) if found else None


def _sums(mutants: Sequence[Mutant]) -> str:
    found = [mutant.found_by for mutant in mutants]
    parts = [f"{found.count(layer)} by {layer}" for layer in (NEAR, *LAYERS)]
    nobody = found.count("")
    gone = f"; gone {found.count(GONE)}" if GONE in found else ""
    part = share(mutants)
    known = "" if part is None else f"; make test finds {part:.0%} of what make test-all finds"
    return f"{len(mutants)} mutants, found {', '.join(parts)}; by nobody {nobody}{gone}{known}"
