"""Records of the index: what they hold, and that nothing else passes for one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from helpers.kept_runs import kept_run
from osbench.coordinator.results.storage.run_index import rows_of
from osbench.edges.history.archives.archive_record import ArchiveRecord, parse_record, run_of
from osbench.edges.history.archives.run_archive import RunArchive


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a run, and an archive that has it."""
    found = tmp_path_factory.mktemp("place")
    run = kept_run(found, count=500)
    RunArchive(str(found / "team"), str(found), pytest.fail).push(run)
    return found


@pytest.fixture(scope="module")
def record(place: Path) -> ArchiveRecord:
    """The record of that run."""
    (found,) = RunArchive(str(place / "team"), str(place), pytest.fail).runs()
    return found.record


def name_of(record: ArchiveRecord) -> str:
    return record.name.removeprefix("index/")


def document_of(record: ArchiveRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zstandard.decompress(record.encoded()))
    return found


def of_document(document: Any) -> bytes:
    return zstandard.compress(json.dumps(document).encode())


def test_a_record_says_what_the_run_directory_says(place: Path, record: ArchiveRecord) -> None:
    from osbench.coordinator.results.storage.run_directory import RunDirectory

    (run,) = RunDirectory.all(str(place))
    (here,) = rows_of(str(place), [run])

    there = record.row()

    assert {**there, "size_bytes": 0} == {**here, "size_bytes": 0}
    assert record.manifest == run.read("run.json")
    assert record.summary == run.read("summary.json")
    assert record.has_traces
    assert record.finished


def test_a_record_is_read_as_it_was_written(record: ArchiveRecord) -> None:
    assert parse_record(name_of(record), record.encoded()) == record


def test_names_of_records_tell_their_run(record: ArchiveRecord) -> None:
    assert run_of(name_of(record)) == record.run_id
    for other in ("README.md", ".json.zst", "../x.0123456789abcdef.json.zst", "a.json.zst", ""):
        assert run_of(other) == ""


def test_a_record_under_another_name_is_refused(record: ArchiveRecord) -> None:
    for name in (
        name_of(record).replace(record.run_id, "20260401-101500-ffff"),
        name_of(record).replace(record.stem[-4:], "0000"),
    ):
        with pytest.raises(ValueError):
            parse_record(name, record.encoded())


def test_a_cut_or_changed_record_is_refused_at_every_place(record: ArchiveRecord) -> None:
    whole, name = record.encoded(), name_of(record)

    for at in range(0, len(whole), max(1, len(whole) // 60)):
        flipped = bytearray(whole)
        flipped[at] ^= 0x55
        for broken in (whole[:at], bytes(flipped)):
            with pytest.raises(ValueError):
                parse_record(name, broken)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"run.json": "[]"},
        {"run.json": '{"task": "another"}'},
        {"summary.json": "{}"},
        {"summary.json": None},
        {"state": "running"},
        {"state": None},
        {"files": []},
        {"files": {}},
        {"files": {"run.json": {"bytes": -1, "sha256": "0" * 64}}},
        {"files": {"run.json": {"bytes": 1, "sha256": "../.."}}},
        {"files": {"../../evil": {"bytes": 1, "sha256": "0" * 64}}},
        {"run": "../../evil"},
        {"run": None},
        {"exit": "x"},
        {"packed_bytes": None},
    ],
)
def test_no_changed_record_passes(record: ArchiveRecord, change: dict[str, Any]) -> None:
    document = {**document_of(record), **change}

    with pytest.raises(ValueError):
        parse_record(name_of(record), of_document(document))


@pytest.mark.parametrize("document", [None, [], 3, "x", {}, {"format": 1}, [[[[]]]]])
def test_other_documents_are_no_records(document: Any) -> None:
    with pytest.raises(ValueError):
        parse_record("a.0123456789abcdef.json.zst", of_document(document))


def test_a_record_of_a_broken_off_run_says_why(record: ArchiveRecord) -> None:
    files = {name: one for name, one in record.files.items() if name != "summary.json"}
    broken = replace(
        record, files=files, summary_text=None, state="broken off", exit_code=3, why="Redis left"
    )

    row = parse_record(name_of(broken), broken.encoded()).row()

    assert (row["state"], row["exit"], row["why"]) == ("broken off", 3, "Redis left")
    assert row["verdict"] is None
    assert not broken.finished
