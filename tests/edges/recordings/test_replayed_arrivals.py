"""The runner `replay`: recorded arrivals, faster or in part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.arrivals import write_arrivals
from osbench.common.plugin.runner import Totals
from osbench.common.protocol import data_rows
from osbench.common.values.intervals import Intervals
from osbench.edges.recordings import replayed_arrivals
from osbench.edges.recordings.arrival_file import ArrivalFile
from osbench.edges.recordings.replayed_arrivals import ArrivalRows, Replay

INSTANTS = [0.5, 1, 1, 2.25, 30, 59]
NAMES = ['GET /a,"b"', "GET /items/{id}", "HEAD /"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(write_arrivals(tmp_path / "a.arrivals", INSTANTS, ["GET /", "GET /b"], 60))


def played(runner: Replay) -> list[float]:
    """All arrivals, as a run asks for them."""
    found: list[float] = []
    elapsed_s = -1.0
    while True:
        step = runner.step(elapsed_s, Totals(allotted=len(found), settled=len(found)), ())
        assert all(due_s <= elapsed_s + 15 for due_s in step.arrivals)
        found += step.arrivals
        if step.done:
            return found
        elapsed_s += 0.5


@pytest.mark.parametrize(
    ("config", "due", "lasts_s"),
    [
        ({}, INSTANTS, 60),
        ({"speed": 2}, [0.25, 0.5, 0.5, 1.125, 15, 29.5], 30),
        ({"from": 1, "to": 30}, [0, 0, 1.25], 29),
        ({"from": 2, "speed": 0.5}, [0.5, 56, 114], 116),
        ({"to": 1000}, INSTANTS, 60),
    ],
)
def test_arrivals_come_at_their_instants(
    path: str, config: dict[str, Any], due: list[float], lasts_s: float
) -> None:
    runner = Replay({"file": path, **config})

    assert Replay.check(runner.config) == []
    assert played(runner) == pytest.approx(due)
    assert runner.planned == len(due)
    assert runner.lasts_s == runner.planned_s == lasts_s


def test_a_step_has_a_bounded_number_of_arrivals(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_arrivals, "MOST", 2)

    assert played(Replay({"file": path})) == pytest.approx(INSTANTS)


def test_the_rate_over_time_has_all_arrivals(path: str) -> None:
    for config in ({}, {"speed": 3}, {"from": 1, "to": 31}):
        runner = Replay({"file": path, **config})
        points = runner.asked()

        pairs = zip(points[::2], points[1::2], strict=True)
        area = sum((end_s - begin_s) * rate for (begin_s, rate), (end_s, _) in pairs)
        assert area == pytest.approx(runner.planned)
        assert points[0][0] == 0
        assert points[-1][0] == pytest.approx(runner.lasts_s)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"from": 5, "to": 5}, "to must be after from, got from 5 and to 5"),
        ({"from": 60}, "from 60 there is no arrival"),
        ({"from": 3, "to": 29}, "from 3 to 29 s there is no arrival"),
    ],
)
def test_parts_without_arrivals_are_refused(path: str, config: dict[str, Any], said: str) -> None:
    (problem,) = Replay.check({"file": path, **config})

    assert problem.startswith(said)


def test_files_that_cannot_be_replayed_are_refused(path: str) -> None:
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[:25] + b"x" + content[26:])

    (problem,) = Replay.check({"file": path})
    (missing,) = Replay.check({"file": path + "x"})

    assert problem.startswith(f"file: {path} is damaged (block 1): copy it again")
    assert missing.startswith(f"file: cannot read {path}x: No such file or directory; ")


def test_an_end_beyond_the_file_is_noted(path: str) -> None:
    assert Replay.notes({"file": path, "to": 60}) == []
    assert Replay.notes({"file": path, "to": 90}) == [
        "to 90 s is beyond the end: the arrivals take 60 s"
    ]


@pytest.fixture
def file(tmp_path: Path) -> ArrivalFile:
    return ArrivalFile(write_arrivals(tmp_path / "a", [0, 1, 2, 3, 4, 5, 6], NAMES, 7))


def names(rows: ArrivalRows, numbers: Intervals) -> list[str]:
    """Return the values that a worker reads of a batch."""
    text = data_rows.decrypt(rows.encrypt(numbers, numbers.members().tolist()), rows.key)
    return [row["branch"] for row in data_rows.RowReader(rows.header).read(text)]


def test_a_batch_has_the_names_of_its_iterations(file: ArrivalFile) -> None:
    rows = ArrivalRows(file, 1, 5)

    found = names(rows, Intervals([(1, 3), (5, 6)]))

    assert found == [NAMES[1], NAMES[2], NAMES[2]]


def test_iterations_beyond_the_last_arrival_begin_again(file: ArrivalFile) -> None:
    rows = ArrivalRows(file, 0, 4)

    found = names(rows, Intervals([(3, 11)]))

    assert found == [NAMES[k % 4 % 3] for k in range(2, 10)]


def test_rows_to_check_are_the_names_that_occur(file: ArrivalFile) -> None:
    assert [row["branch"] for row in ArrivalRows(file, 0, 7).rows()] == NAMES
    assert [row["branch"] for row in ArrivalRows(file, 1, 2).rows()] == NAMES[1:]
