"""A few rounds of `make chaos`, always the same ones: kills, resumes, lost data, forged records."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.rounds import play
from chaos.schedule import schedule_of

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(900)]

#: Between them: a killed host, killed coordinators, rollbacks, a failover, lost replies, an attack,
#: two workloads at once and in turn, a context, Ctrl-C.
SEEDS = (65,)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_round_fits_with_what_the_server_saw(seed: int, tmp_path: Path) -> None:
    schedule = schedule_of(seed)
    print(f"replay: make chaos ROUNDS=1 SEED={seed}\n{schedule}")

    outcome = play(schedule, keep=tmp_path / "files")

    print(outcome)
    assert not outcome.violations
    accounted = outcome.sums["planned"] + outcome.sums["not begun"]
    assert accounted == sum(run.times for run in schedule.runs)
