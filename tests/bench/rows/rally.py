"""Rally's dummies on osbench and on Rally: nothing in the context, and many users in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from bench.comparison import Comparison, Target
from bench.crowd import crowd, spec
from bench.rally import Rally
from bench.rounds import Values, best, interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

#: Virtual users of osbench; threads of Rally that are tried.
USERS = 16
THREADS = (16, 64)
#: Length of a block in which the best of these is found, seconds.
TRIAL_S = 2.0
#: Users of the cloud. Names of values are those of the arms.
CROWDS = (1, 100, 500)


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Dummy.dummy, and Dummy.openstack with 1, 100 and 500 users."""
    with crowd() as auth_url:
        rally = Rally(stage)
        for count in CROWDS:
            rally.create(str(count), {"existing@openstack": spec(auth_url, count)})
        threads = best(THREADS, lambda n: rally.rate("Dummy.dummy", n, TRIAL_S))
        say(f"best: Rally with {threads} threads")
        arms: dict[str, Callable[[], dict[str, float]]] = {
            "osbench": lambda: {"ours": _rate(stage, "Dummy.dummy@rally")},
            "Rally": lambda: {"theirs": rally.rate("Dummy.dummy", threads, stage.block_s)},
        }
        for count in CROWDS:
            arms |= _with_users(stage, rally, auth_url, count, threads)
        return _comparisons(interleave(arms, stage.rounds, say), threads)


def _with_users(
    stage: Stage, rally: Rally, auth_url: str, count: int, threads: int
) -> dict[str, Callable[[], dict[str, float]]]:
    scenario, block_s = "Dummy.openstack", stage.block_s
    record = {"openstack": spec(auth_url, count)}
    return {
        f"osbench, {count} users": lambda: {f"ours {count}": _rate(stage, scenario, record)},
        f"Rally, {count} users": lambda: {
            f"theirs {count}": rally.rate(scenario, threads, block_s, str(count))
        },
    }


def _comparisons(values: Values, threads: int) -> list[Comparison]:
    first, *more = CROWDS
    rally = f"Rally, concurrency {threads}"

    def line(title: str, ours: str, name: str, theirs: str, bound: float) -> Comparison:
        return Comparison(
            row="rally",
            title=title,
            unit="1/s",
            osbench=values[ours],
            peer_name=name,
            peer=values[theirs],
            target=Target(bound=bound),
            note=f"{WORKERS} workers",
        )

    def fall(count: int) -> Comparison:
        lost = median(values[f"theirs {count}"]) / median(values[f"theirs {first}"])
        found = line(
            f"Dummy.openstack, {count} users",
            f"ours {count}",
            f"the same, {first} user",
            f"ours {first}",
            0.95,
        )
        return replace(found, note=f"Rally: {lost:.2f} x")

    last = more[-1]
    return [
        line("Rally's Dummy.dummy", "ours", rally, "theirs", 3.0),
        *map(fall, more),
        line(f"Dummy.openstack, {last} users", f"ours {last}", rally, f"theirs {last}", 50.0),
    ]


def _rate(stage: Stage, scenario: str, record: dict[str, Any] | None = None) -> float:
    stage.configure()
    stage.forget_runs()
    arguments = ["--workers", str(WORKERS)]
    if record is not None:
        file = stage.subfolder("deployment") / "crowd.json"
        file.write_text(json.dumps(record))
        stage.coord("deployment", "create", "--name", "crowd", "--file", str(file))
    runner = {"constant_for_duration": {"duration": stage.block_s, "concurrency": USERS}}
    found = stage.run({"scenario": {scenario: {}}, "runner": runner}, *arguments)
    return float(found["workloads"][0]["throughput"]["ok_per_s"])
