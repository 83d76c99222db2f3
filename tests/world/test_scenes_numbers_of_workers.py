"""All workers together start what one worker starts: a test each of all that is parted among them.

With 1, 2 and 4 workers, whose clocks run right.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from osbench.coordinator.plugins.runners.user_stages import StagedUsers
from world.coordinators import SimulatedRun
from world.fibers import S
from world.scenes import code_and_ok, play_out, staffed

#: A start may be as much later than planned: threads are put aside, and users are granted by
#: control records, seconds.
ARRIVES_S, GRANTED_S = 0.12, 0.5
#: Iterations that go on for as long as the load.
ENDLESS = {"least_s": 40.0, "most_s": 40.0}
QUICK = {"least_s": 0.01, "most_s": 0.01}

over_workers = pytest.mark.parametrize("workers", [1, 2, 4])


def played(workers: int, **load: Any) -> SimulatedRun:
    """A run of this load, which has ended well."""
    with staffed(workers) as world:
        for one in world.workers:
            one.process.rate = 1.0
        run = world.add(workers=workers, **load)
        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        return run


def starts(run: SimulatedRun) -> list[float]:
    """When iterations have started, seconds after the first one."""
    found = sorted(start.at_ns for start in run.known.starts)
    return [(at_ns - found[0]) / S for at_ns in found]


def check(found: list[float], planned: list[float], late_s: float) -> None:
    """Each start is at its time, counted from the first one."""
    assert len(found) == len(planned)
    apart = [at - due for at, due in zip(found, planned, strict=True)]
    # the first one may have been late itself
    assert -late_s <= min(apart)
    assert max(apart) <= late_s, list(zip(found, planned, strict=True))


def processes(run: SimulatedRun) -> set[str]:
    return {start.process for start in run.known.starts}


@over_workers
def test_arrivals_of_a_rate_are_at_an_even_distance(workers: int) -> None:
    run = played(workers, runner={"rps": {"rps": 3, "duration": 6}})

    check(starts(run), [number / 3 for number in range(18)], ARRIVES_S)
    assert len(processes(run)) == workers


@over_workers
def test_a_ramp_of_a_rate_has_its_steps(workers: int) -> None:
    rate = {"start": 2, "end": 6, "step": 2}
    run = played(workers, runner={"rps": {"rps": rate, "duration": 6}})

    seconds = Counter(int(at + 0.1) for at in starts(run))
    assert [seconds[at] for at in range(6)] == [2, 4, 6, 6, 6, 6]


@over_workers
def test_stages_of_a_rate_have_their_arrivals(workers: int) -> None:
    stages = [{"target": 6, "duration": 4}, {"target": 1, "duration": 3}]
    planned = starts(played(1, runner={"stages": {"start": 2, "stages": stages}}))

    run = played(workers, runner={"stages": {"start": 2, "stages": stages}})

    # 4 s of 4/s on average, and 3 s of 3.5/s
    assert len(planned) in {26, 27}
    check(starts(run), planned, ARRIVES_S)


@over_workers
def test_users_start_at_their_rate(workers: int) -> None:
    run = played(
        workers,
        runner={"constant_for_duration": {"duration": 8, "concurrency": 9}},
        args=ENDLESS,
        users={"start_rate": 2},
    )

    check(starts(run), [number / 2 for number in range(9)], GRANTED_S)


@over_workers
def test_stages_of_users_have_their_users(workers: int) -> None:
    config = {"stages": [{"users": 9, "duration": 9}, {"users": 3, "duration": 6}]}
    run = played(workers, runner={"user_stages": config}, args={"least_s": 0.1, "most_s": 0.1})

    runner = StagedUsers(config)
    begun = [start.at_ns for start in run.known.starts]
    # the first user is due half a second after the load has begun
    t0_ns = min(begun) - S // 2
    for second in range(2, 15):
        # each user starts ten iterations a second
        users = sum(0 <= at_ns - t0_ns - (second - 0.5) * S < S for at_ns in begun) / 10
        about = [runner.users(second + part / 4) for part in range(-4, 3)]
        assert min(about) - 1 <= users <= max(about) + 0.5, second


@over_workers
@pytest.mark.parametrize("concurrency", [5, 12])
def test_turns_of_a_highest_rate_are_at_an_even_distance(workers: int, concurrency: int) -> None:
    run = played(
        workers,
        runner={"constant_for_duration": {"duration": 12, "concurrency": concurrency}},
        args=QUICK,
        users={"max_rate": 1},
    )

    check(starts(run), list(range(12)), ARRIVES_S)


@over_workers
def test_turns_of_a_highest_rate_stay_while_users_start(workers: int) -> None:
    """No turn is taken twice, or by no worker, if the parts of workers change."""
    run = played(
        workers,
        runner={"constant_for_duration": {"duration": 24, "concurrency": 12}},
        args=QUICK,
        users={"max_rate": 2, "start_rate": 0.5},
    )

    check(starts(run), [number / 2 for number in range(48)], ARRIVES_S)


@over_workers
def test_as_many_iterations_as_users_run_at_once(workers: int) -> None:
    run = played(
        workers, runner={"constant": {"times": 101, "concurrency": 7}}, args={"least_s": 0.1}
    )

    assert run.known.most_at_once == 7
    assert sorted(run.known.started.elements()) == list(range(1, 102))


@over_workers
def test_users_that_think_keep_their_rate(workers: int) -> None:
    run = played(
        workers,
        runner={"constant_for_duration": {"duration": 10, "concurrency": 6}},
        args={"least_s": 0.1, "most_s": 0.1},
        think={"min": 0.9},
    )

    # one a second of each user
    assert len(run.known.starts) == pytest.approx(60, abs=2)


def noted(path: Path, workers: int, scenario: dict[str, Any], **load: Any) -> list[list[str]]:
    """Notes of a run with a file of 40 rows, r1 to r40, as words."""
    path.write_text("row\n" + "".join(f"r{number}\n" for number in range(1, 41)))
    subtask = {"title": "rows", "scenario": scenario, **load}
    with staffed(workers) as world:
        document = {"version": 2, "title": "rows", "subtasks": [subtask]}
        run = world.begin(document, at_s=0.0, workers=workers)
        play_out(world)
        assert code_and_ok(run)[0] == 0
    return [note.split() for note in run.known.notes]


@over_workers
@pytest.mark.parametrize(
    "runner",
    [{"rps": {"rps": 10, "times": 40}}, {"constant": {"times": 40, "concurrency": 5}}],
    ids=["open", "closed"],
)
def test_each_row_is_that_of_its_iteration(
    tmp_path: Path, workers: int, runner: dict[str, Any]
) -> None:
    """No row is used twice, as docs/flows.md says."""
    file = tmp_path / "rows.csv"

    rows = noted(file, workers, {"Noted.work": {"fails": 99}}, runner=runner, args_from=str(file))

    assert sorted(int(number) for number, _ in rows) == list(range(1, 41))
    assert all(row == f"r{number}" for number, row in rows)


@over_workers
def test_each_user_has_its_row(tmp_path: Path, workers: int) -> None:
    file = tmp_path / "rows.csv"
    runner = {"constant": {"times": 60, "concurrency": 7}}

    rows = noted(
        file, workers, {"Noted.user": {}}, runner=runner, users={"data": {"file": str(file)}}
    )

    assert {(number, row) for number, row in rows} == {(str(at), f"r{at}") for at in range(1, 8)}
