"""Cases of what is counted: rates of windows, of one iteration, of a ramp, and warm-ups."""

from __future__ import annotations

from truth import checks
from truth.case import Case
from truth.planting import Planting


def throughput(sleep_s: float = 5.0, least: float = 9.0) -> Case:
    """Offer 10/s of iterations that take long: they do not change the rate."""
    return Case(
        name="throughput",
        planted=f"open 10/s of {sleep_s:g} s, 50 iterations",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Dummy.dummy": {"sleep": sleep_s}},
                    "runner": {"rps": {"times": 50, "rps": 10}},
                    "sla": {"throughput": {"min": least}},
                }
            ]
        ),
        checks=[
            checks.number("throughput.span_s", 5.0, within=0.001, is_timed=True),
            checks.number("throughput.ok_per_s", 10.0, within=0.03, is_timed=True),
            checks.exits(0),
        ],
    )


def one_iteration() -> Case:
    """Run one iteration: it has no rate."""
    return Case(
        name="one-iteration",
        planted="one iteration",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Dummy.dummy": {}},
                    "runner": {"constant": {"times": 1, "concurrency": 1}},
                }
            ]
        ),
        checks=[checks.number("throughput.ok_per_s", None), checks.exits(0)],
    )


def ramp() -> Case:
    """Raise the rate each second: each step has its own rate, and the plan their mean."""
    rate = {"start": 10, "end": 30, "step": 10, "duration": 1}
    return Case(
        name="ramp",
        planted="10, 20, 30/s for 1 s each",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
                    "runner": {"rps": {"times": 60, "rps": rate}},
                }
            ]
        ),
        checks=[
            checks.number("offered.rate_planned", 20.0, within=0.001),
            checks.number("stages.2.ok_per_s", 30.0, within=0.05, is_timed=True),
            checks.exits(0),
        ],
    )


def long_warm_up() -> Case:
    """Warm up for longer than a load whose end is not known: nothing is left to be counted."""
    return Case(
        name="long-warm-up",
        planted="a warm-up of 60 s, 20 iterations of 10 ms",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
                    "runner": {"constant": {"times": 20, "concurrency": 2}},
                    "warmup": 60,
                    # nothing is left that could be judged
                    "sla": {},
                }
            ]
        ),
        checks=[
            checks.note("the warm-up of", "is longer than the load"),
            checks.number("latency.service.ok.count", 0),
            checks.exits(0),
        ],
    )


def refused_warm_up() -> Case:
    """Ask for a warm-up that is longer than the load is planned to last: the task is refused."""
    return Case(
        name="refused-warm-up",
        planted="a warm-up of 60 s, a load of 1 s",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
                    "runner": {"rps": {"times": 20, "rps": 20}},
                    "warmup": 60,
                }
            ]
        ),
        checks=[checks.says("must be less than the 1 s"), checks.no_workloads(), checks.exits(2)],
    )
