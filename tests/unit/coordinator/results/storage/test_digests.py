"""What binds the files of a finished run: whichever is damaged, a reader learns which."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from oslo_config import cfg

from helpers.kept_runs import DAMAGES, FILES, damage, kept_run
from osbench.common.errors import DamagedRun
from osbench.coordinator.load.run.resumption import run_request
from osbench.coordinator.report.iterations import iterations
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage import failure, resumable
from osbench.coordinator.results.storage.digests import COVERED, DIGESTS
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import summary_of, write_summary

OTHER = "20260402-101500-cdef"
#: Places at which each file is damaged in each way.
PLACES = 25


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return kept_run(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return kept_run(tmp_path_factory.mktemp("other"), OTHER, seed=2)


@pytest.fixture
def copy(kept: RunDirectory, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(kept.path, tmp_path / kept.path.name))


def test_a_run_as_it_ended_has_no_problem(kept: RunDirectory) -> None:
    assert kept.files.problems() == []
    assert {name for name in COVERED if not (kept.path / name).exists()} == set()


@pytest.mark.parametrize("name", FILES)
def test_any_damage_is_found_and_names_the_file(
    copy: RunDirectory, other: RunDirectory, name: str
) -> None:
    path, chance = copy.path / name, random.Random(name)
    before = path.read_bytes()
    for how in (*DAMAGES, "gone", "swapped"):
        for _ in range(1 if how in ("gone", "swapped") else PLACES):
            path.write_bytes(before)
            damage(path, how, chance, other.path / name)
            if path.exists() and path.read_bytes() == before:
                continue

            found = RunDirectory(copy.path).files.problems()

            if name == DIGESTS and not found:
                # such as another blank between two values: the document is the same
                continue
            assert name in found[0] or (how == "swapped" and OTHER in found[0]), (how, found)
            assert len(found) == 1 or (name, how) == (DIGESTS, "swapped"), found


def test_a_reader_of_one_file_finds_its_damage_and_not_that_of_another(copy: RunDirectory) -> None:
    damage(copy.path / "blocks", "flipped", random.Random(1), copy.path)

    assert copy.read("run.json") is not None
    with pytest.raises(DamagedRun, match=r"blocks was changed and [\d,]+ of 25,000 rows"):
        list(copy.blocks())
    with pytest.raises(DamagedRun, match=f"run {copy.path.name} is damaged: blocks was changed"):
        copy.replay()


def test_a_cut_file_is_found_by_whoever_reads_the_summary(copy: RunDirectory) -> None:
    size = (copy.path / "blocks").stat().st_size
    with (copy.path / "blocks").open("r+b") as file:
        file.truncate(size // 3)

    with pytest.raises(DamagedRun, match=rf"blocks has [\d,]+ of {size:,} bytes and 0 of 25,000"):
        summary_of(copy)


def test_what_is_left_is_read_when_its_damage_is_accepted(copy: RunDirectory) -> None:
    blocks = copy.path / "blocks"
    with blocks.open("r+b") as file:
        file.truncate(blocks.stat().st_size - 1)

    said = copy.accept_damage()
    summary = summary_of(copy)

    assert said.startswith("PARTIAL: files of this run are damaged: blocks has")
    assert summary is not None
    assert summary["notes"][0] == said
    assert sum(len(columns) for _, _, columns in counted_rows(copy)) == 20_000


def test_a_run_of_an_older_release_is_judged_by_what_it_has(copy: RunDirectory) -> None:
    (copy.path / DIGESTS).unlink()
    manifest = copy.path / "run.json"
    manifest.write_text(manifest.read_text().replace('"digests"', '"more"'))

    assert copy.files.problems() == []
    assert summary_of(copy) is not None
    assert sum(len(columns) for _, _, columns in counted_rows(copy)) == 25_000


def test_a_document_that_is_written_again_stays_bound(copy: RunDirectory) -> None:
    summary = copy.read("summary.json")
    assert summary is not None

    copy.write("summary.json", {**summary, "notes": ["an export failed"]})

    assert copy.files.problems() == []
    again = RunDirectory(copy.path).read("summary.json")
    assert again is not None
    assert again["notes"] == ["an export failed"]


def test_a_run_that_ended_between_digests_and_summary_has_none(copy: RunDirectory) -> None:
    (copy.path / "summary.json").unlink()
    (copy.path / resumable.PLAN).touch()

    assert copy.files.problems() == []
    assert copy.read("run.json") is not None


def test_a_run_that_is_taken_up_again_has_no_digests(copy: RunDirectory) -> None:
    (copy.path / resumable.PLAN).touch()

    resumable.begin_again(copy)

    assert not (copy.path / DIGESTS).exists()
    assert copy.read(failure.FAILURE) is None


def test_blocks_that_are_not_what_the_journal_says_are_told_without_digests(
    copy: RunDirectory, other: RunDirectory
) -> None:
    """So is a run that was killed."""
    for name in (DIGESTS, "summary.json", "status.json"):
        (copy.path / name).unlink()
    blocks, journal = copy.path / "blocks", copy.path / "journal"
    kept = blocks.read_bytes()

    blocks.write_bytes(kept[:-9000])
    with pytest.raises(
        DamagedRun, match=rf"blocks is damaged: it has [\d,]+ of at least {len(kept):,}"
    ):
        copy.replay()
    blocks.write_bytes((other.path / "blocks").read_bytes() + kept)
    with pytest.raises(DamagedRun, match=f"blocks at byte 0 belongs to run {OTHER}, not to run"):
        list(copy.replay())
    blocks.write_bytes(kept)
    journal.write_bytes((other.path / "journal").read_bytes())
    with pytest.raises(DamagedRun, match=rf"journal at byte 0 belongs to run {OTHER}"):
        copy.replay()


def test_a_killed_run_whose_journal_was_cut_is_told_by_its_last_note(copy: RunDirectory) -> None:
    for name in (DIGESTS, "summary.json"):
        (copy.path / name).unlink()
    journal = copy.path / "journal"
    size = journal.stat().st_size
    with journal.open("r+b") as file:
        file.truncate(0)

    with pytest.raises(
        DamagedRun, match=rf"journal is damaged: it has 0 of at least {size:,} bytes"
    ):
        copy.replay()


@pytest.mark.parametrize("name", ["journal", "blocks"])
def test_what_is_wrong_with_a_killed_run_is_told_or_changes_nothing(
    copy: RunDirectory, other: RunDirectory, name: str
) -> None:
    for left in (DIGESTS, "summary.json"):
        (copy.path / left).unlink()
    path, chance = copy.path / name, random.Random(name)
    before, rows = path.read_bytes(), list(iterations(copy))
    for how in (*DAMAGES, "gone", "swapped"):
        for _ in range(1 if how in ("gone", "swapped") else 5):
            path.write_bytes(before)
            damage(path, how, chance, other.path / name)

            try:
                found = list(iterations(RunDirectory(copy.path)))
            except DamagedRun as error:
                assert name in str(error)
            else:
                assert found == rows, how


def test_what_another_run_was_asked_for_is_not_run_again(
    copy: RunDirectory, other: RunDirectory
) -> None:
    damage(copy.path / "request", "swapped", random.Random(1), other.path / "request")

    with pytest.raises(DamagedRun, match=r"request has 12 of 6 bytes"):
        run_request.load(copy, cfg.ConfigOpts())


def test_a_status_that_a_crash_has_left_half_written_hinders_nobody(copy: RunDirectory) -> None:
    for left in (DIGESTS, "summary.json"):
        (copy.path / left).unlink()
    (copy.path / "status.json").write_bytes(bytes(300))

    copy.lock()
    copy.close()

    assert sum(len(rows) for *_, rows in counted_rows(copy)) == 25_000


def test_a_torn_end_is_cut_and_what_was_on_disk_before_is_not(copy: RunDirectory) -> None:
    for left in (DIGESTS, "summary.json"):
        (copy.path / left).unlink()
    blocks = copy.path / "blocks"
    whole = blocks.read_bytes()

    blocks.write_bytes(whole + b"torn")
    copy.lock()
    copy.close()
    assert blocks.read_bytes() == whole

    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    blocks.write_bytes(damaged)
    with pytest.raises(DamagedRun, match="blocks is damaged at byte"):
        copy.lock()
    assert blocks.read_bytes() == damaged
    assert not copy.has_coordinator()


def test_a_summary_without_its_digests_is_not_believed(copy: RunDirectory) -> None:
    write_summary_again = RunDirectory(copy.path)
    (copy.path / DIGESTS).unlink()

    with pytest.raises(DamagedRun, match=r"digests\.json is missing"):
        summary_of(write_summary_again)


def test_digests_are_written_before_the_summary(tmp_path: Path, monkeypatch) -> None:
    directory = RunDirectory.create(str(tmp_path), "r")
    written: list[str] = []
    replace = RunDirectory._replace

    def noted(self: RunDirectory, name: str, content: bytes, *, sync: bool) -> None:
        written.append(name)
        replace(self, name, content, sync=sync)

    monkeypatch.setattr(RunDirectory, "_replace", noted)
    write_summary(directory, {"run_id": "r"})
    directory.close()

    assert written == [DIGESTS, "summary.json"]
