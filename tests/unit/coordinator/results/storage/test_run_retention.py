"""Which runs are deleted, which are not, and the space they take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.formatting import size
from osbench.coordinator.results.storage import run_retention
from osbench.coordinator.results.storage.run_directory import RunDirectory

NOW_AT = 1_000_000.0


def runs(data: Path, *ages_s: float) -> list[RunDirectory]:
    """Finished runs of some ages, oldest first."""
    for number, age_s in enumerate(ages_s):
        run = RunDirectory.create(str(data), f"2026010{number}-120000-aaaa")
        run.write("run.json", {"started_at": NOW_AT - age_s})
        run.close()
    return RunDirectory.all(str(data))


@pytest.mark.parametrize(
    ("keep", "older_than_s", "gone"),
    [
        (2, None, [0, 1]),
        (0, None, [0, 1, 2, 3]),
        (9, None, []),
        (None, 50.0, [0, 1]),
        (3, 50.0, [0]),
        (1, 500.0, []),
    ],
)
def test_a_run_goes_if_nothing_keeps_it(
    tmp_path: Path, keep: int | None, older_than_s: float | None, gone: list[int]
) -> None:
    every = runs(tmp_path, 400.0, 300.0, 20.0, 10.0)

    found = run_retention.superfluous(every, keep=keep, older_than_s=older_than_s, now_at=NOW_AT)

    assert [every.index(one) for one in found] == gone


def test_a_run_that_does_not_say_when_it_began_has_the_age_of_its_folder(tmp_path: Path) -> None:
    RunDirectory.create(str(tmp_path), "20260101-120000-aaaa").close()
    (run,) = RunDirectory.all(str(tmp_path))

    assert run_retention.begun_at(run) == run.path.stat().st_mtime


@pytest.mark.parametrize(
    ("text", "age_s"),
    [
        ("45s", 45),
        ("90m", 5400),
        ("12h", 43200),
        ("30d", 2_592_000),
        ("1.5d", 129_600),
        ("4w", 2_419_200),
    ],
)
def test_ages_are_read(text: str, age_s: float) -> None:
    assert run_retention.age_s(text) == age_s


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "3 years", "1e9d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not an age"):
        run_retention.age_s(text)


def test_the_size_is_that_of_all_files(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, 1.0)
    before = run_retention.size_bytes(run)
    (run.path / "traces").mkdir()
    (run.path / "traces" / "kept").write_bytes(b"x" * 100_000)

    assert run_retention.size_bytes(run) - before >= 100_000


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (1_234_567, "1.23 MB"), (999_600, "1.00 MB"),
     (5 * 10**15, "5,000 TB")],
)  # fmt: skip
def test_sizes_are_read_by_people(number: int, text: str) -> None:
    assert size(number) == text


def test_a_run_with_resources_left_is_deleted_only_by_force(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, 1.0)
    (run.path / "contexts").write_bytes(b"signed")

    with pytest.raises(UsageError, match="osbench-coord cleanup 20260100"):
        run.delete()
    assert json.loads((run.path / "run.json").read_text())
    run.delete(force=True)

    assert not run.path.exists()


def test_no_force_deletes_a_running_run(tmp_path: Path) -> None:
    running = RunDirectory.create(str(tmp_path), "20260101-120000-aaaa")
    (running.path / "contexts").write_bytes(b"signed")

    with pytest.raises(UsageError, match="is running"):
        running.delete(force=True)
    running.close()


def test_what_a_run_in_the_background_printed_goes_with_it(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, 1.0)
    log = tmp_path / "detached" / f"{run.path.name}.log"
    log.parent.mkdir()
    log.write_text("done\n")

    run.delete()

    assert not log.exists()
