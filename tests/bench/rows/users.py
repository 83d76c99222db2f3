"""Ten thousand virtual users that think for a second: are they held, and how late do they wake?"""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

USERS = 10_000
THINK_S = 1.0
#: Time over which users are added, and from which iterations count, seconds.
RAMP_UP_S = 3.0
WARM_UP_S = 5.0


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Coroutines; iterations that started in the warm-up do not count."""
    values = interleave({"osbench": lambda: _osbench(stage)}, stage.rounds, say)
    title = f"{USERS:,} virtual users of {THINK_S:g} s think time, {WORKERS} workers"
    return [
        Comparison(
            row="users",
            title=f"{title}, {what}",
            unit=unit,
            osbench=values[name],
            target=Target(bound=bound, at_most=at_most),
        )
        for name, what, unit, bound, at_most in (
            ("held", "share of the rate that is held", "", 0.98, False),
            ("wake", "p99 of the wake after the think time", "ms", 3.0, True),
        )
    ]


def _osbench(stage: Stage) -> dict[str, float]:
    stage.configure()
    stage.forget_runs()
    runner = {
        "duration": WARM_UP_S + 2 * stage.block_s,
        "concurrency": USERS,
        "ramp_up": RAMP_UP_S,
    }
    found = stage.run(
        {
            "scenario": {"Bench.think": {"think_s": THINK_S}},
            "runner": {"constant_for_duration": runner},
            "warmup": WARM_UP_S,
        },
        "--workers",
        str(WORKERS),
    )["workloads"][0]
    # a user begins its next iteration when the last one is over, so that its start is never late:
    # what is late is the end of its think time
    response = found["latency"]["response"]["ok"]
    return {"held": THINK_S / response["mean"], "wake": (response["p99"] - THINK_S) * 1e3}
