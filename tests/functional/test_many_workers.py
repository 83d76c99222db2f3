"""Many workers on one coordinator and one Redis, by a worker's own code without scenarios."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bench.stage import Stage
from simulation.figures import simulate

TIMES = 4000
OPEN = {"rps": {"rps": 1000, "times": TIMES}}
CLOSED = {"constant": {"times": TIMES, "concurrency": 10}}


@pytest.mark.parametrize(("workers", "runner"), [(20, OPEN), (10, CLOSED)])
def test_many_workers_bring_every_iteration_once_and_leave_no_key(
    tmp_path: Path, workers: int, runner: dict[str, Any]
):
    stage = Stage(folder=tmp_path.resolve(), peers=Path(sys.executable), rounds=1, block_s=4)

    found = simulate(stage, workers, runner, 4.0)

    # `simulate` raises where an iteration of the plan is not ok
    assert found.ok == TIMES
    assert found.blocks_per_s > 0
    assert found.keys_left == 0
