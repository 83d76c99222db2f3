"""A seed gives one schedule, and all kinds of faults come up."""

from __future__ import annotations

import re

from chaos.faults import FAULTS
from chaos.schedule import BROKER_FAULTS, GENTLE, WEIGHTS, schedule_of
from helpers.readme import text


def test_a_seed_gives_the_same_schedule_again() -> None:
    assert schedule_of(7) == schedule_of(7)
    assert schedule_of(7) != schedule_of(8)


def test_every_fault_of_a_schedule_can_happen_and_comes_up() -> None:
    assert set(WEIGHTS) == set(FAULTS)
    assert {fault.kind for seed in range(400) for fault in schedule_of(seed).faults} == set(FAULTS)


def test_schedules_are_within_their_bounds() -> None:
    for seed in range(200):
        schedule = schedule_of(seed)

        assert 2 <= schedule.hosts <= 4
        assert 1 <= len(schedule.faults) <= 9
        kinds = [fault.kind for fault in schedule.faults]
        assert any(kind in BROKER_FAULTS for kind in kinds) == schedule.has_rabbitmq
        assert sum(run.workers or schedule.hosts for run in schedule.runs) <= schedule.hosts
        for run in schedule.runs:
            assert all(load.times >= 20 for load in run.loads)
            # each workload that runs at once needs a worker
            assert not run.is_parallel or len(run.loads) <= (run.workers or schedule.hosts)


def test_all_shapes_of_runs_come_up() -> None:
    runs = [run for seed in range(200) for run in schedule_of(seed).runs]

    for trait in ("is_parallel", "is_idempotent", "has_context"):
        assert {getattr(run, trait) for run in runs} == {True, False}
    assert {len(run.loads) for run in runs} == {1, 2}


def test_a_schedule_is_gentle_where_nothing_dies() -> None:
    gentle = [schedule_of(seed) for seed in range(200) if schedule_of(seed).is_gentle]

    assert gentle
    assert all(fault.kind in GENTLE for one in gentle for fault in one.faults)


def test_the_page_on_chaos_names_every_fault() -> None:
    (table,) = re.findall(r"^## Faults$(.*?)^## ", text("docs/chaos.md"), re.M | re.S)
    names = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^(\| `.*?) \|", table, re.M)))

    assert sorted(names) == sorted(FAULTS)
