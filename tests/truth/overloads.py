"""The command of `make overload-truth`: overloads of planted services, in virtual time.

Each round draws the parameters of a service of each kind, and of its load, plays the overload
arrival by arrival, and compares the verdict with the fate of the service. Then the same overload is
watched by a load generator that was late: the verdict may be `unknown` then.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence

import click
import numpy as np

from helpers.planted_overloads import RIGHT, PlantedOverload, Random, planted
from osbench.edges.overload.overload_figures import OverloadAnswer

#: Verdicts that would be false beside a late generator, by the right one.
FALSE = {
    OverloadAnswer.BACK: {OverloadAnswer.STUCK, OverloadAnswer.LEAK},
    OverloadAnswer.STUCK: {OverloadAnswer.BACK, OverloadAnswer.NOT_OVERLOADED, OverloadAnswer.LEAK},
    OverloadAnswer.LEAK: {OverloadAnswer.STUCK, OverloadAnswer.NOT_OVERLOADED},
    OverloadAnswer.NOT_OVERLOADED: {OverloadAnswer.STUCK, OverloadAnswer.LEAK},
}


def draw(kind: str, seed: int) -> tuple[PlantedOverload, Random]:
    """A planted overload and the chance that goes on behind it."""
    random = np.random.default_rng([seed, list(RIGHT).index(kind)])
    return planted(random, kind), random


def verdict_of(one: PlantedOverload) -> tuple[str, str]:
    """The verdict, and the fault of it or of its interval; "" if both are right."""
    found = one.statistics().figures().overload
    assert found is not None
    verdict = str(found["verdict"])
    if verdict != RIGHT[one.kind]:
        return verdict, f"{found['sentences'][0]}; {one.told}"
    if verdict == OverloadAnswer.BACK:
        low, high = found["back_ci"]
        if not low <= one.back_s <= high:
            return verdict, f"{found['sentences'][0]}, in truth {one.back_s:.2f} s; {one.told}"
    return verdict, ""


def pauses_of(random: Random, one: PlantedOverload) -> tuple[tuple[float, float], ...]:
    """Times in which the load generator does nothing: short ones throughout, or long ones after."""
    plan = one.plan
    if random.random() < 0.5:
        begins = np.arange(1.0, plan.end_s, random.uniform(2, 5))
        return tuple((float(at), float(at + random.uniform(0.3, 1.5))) for at in begins)
    begin = plan.begin_s + random.uniform(0, float(plan.for_s))
    return tuple(
        (float(at), float(at + 3)) for at in np.arange(begin, plan.end_s, random.uniform(4, 8))
    )


def falsehood(one: PlantedOverload, pauses: Sequence[tuple[float, float]]) -> tuple[str, str]:
    """The verdict beside a generator that pauses, and why it is false; "" if it is not."""
    found = one.statistics(tuple(pauses)).figures().overload
    assert found is not None
    verdict = OverloadAnswer(found["verdict"])
    if verdict in FALSE[OverloadAnswer(RIGHT[one.kind])]:
        return str(verdict), f"{found['sentences'][0]}; pauses {pauses[:2]}; {one.told}"
    return str(verdict), ""


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=click.IntRange(1), default=20, help="Services of each kind.")
@click.option("--first", default=1000, help="Seed of the first one.")
def main(rounds: int, first: int) -> None:
    """Overload planted services, and count the right verdicts and intervals.

    Exit code 1 if a verdict is wrong.
    """
    begun = time.monotonic()
    wrong = 0
    for kind, right in RIGHT.items():
        verdicts: Counter[str] = Counter()
        late: Counter[str] = Counter()
        faults = false = 0
        for seed in range(first, first + rounds):
            one, random = draw(kind, seed)
            verdict, fault = verdict_of(one)
            verdicts[verdict] += 1
            beside, lie = falsehood(one, pauses_of(random, one))
            late[beside] += 1
            for text in filter(None, (fault, lie)):
                click.echo(f"WRONG, seed {seed}: {text}")
            faults, false = faults + bool(fault), false + bool(lie)
        wrong += faults + false
        interval = ", time within its interval" if right == OverloadAnswer.BACK else ""
        click.echo(
            f"{kind:24} {right}{interval}: {rounds - faults} of {rounds}; beside a late generator"
            f" {false} false: {', '.join(f'{n} {name}' for name, n in late.most_common())}"
        )
    click.echo(f"seeds {first} to {first + rounds - 1}, {time.monotonic() - begun:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
