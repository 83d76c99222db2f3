"""The run directory: one coordinator, what it decided and received, and how it is found."""

from __future__ import annotations

import fcntl
import json
import shutil
import threading

import pytest

from helpers.result_rows import row_of
from osbench.common.errors import DirectoryRemoved, OsbenchError, UsageError
from osbench.common.protocol.columns import encode_rows
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path):
    found = RunDirectory.create(str(tmp_path), "20260101-120000-aaaa")
    yield found
    found.close()


def block(worker: str, workload: int, numbers: list[int]) -> dict:
    rows = [row_of(number, 1, 5, 6, 7, 0, 0, (), None) for number in numbers]
    columns = encode_rows(rows, (), 5) if rows else {}
    return {"incarnation": worker, "workload": workload, "columns": columns}


def test_a_new_run_is_private_and_empty(run):
    assert run.path.stat().st_mode & 0o777 == 0o700
    assert list(run.decisions()) == []
    assert list(run.blocks()) == []


def test_a_run_directory_that_was_removed_takes_nothing(run):
    shutil.rmtree(run.path)

    with pytest.raises(DirectoryRemoved, match="journal: the run"):
        run.decide([{"do": "open"}])
    with pytest.raises(DirectoryRemoved, match=r"status\.json: the run directory was removed"):
        run.write("status.json", {})


def test_decisions_are_read_in_order(run):
    run.decide([{"do": "open"}, {"do": "cut", "intervals": [(1, 5)]}])
    run.decide([{"do": "close"}])

    assert [record["do"] for record in run.decisions()] == ["open", "cut", "close"]
    assert list(run.decisions())[1]["intervals"] == [[1, 5]]


def test_blocks_are_read_as_they_were_kept(run):
    bodies = [block("w1", 0, [1, 2]), block("w2", 1, list(range(1000)))]

    run.keep(bodies)

    assert list(run.blocks()) == bodies


def test_the_rows_of_one_workload_come_with_their_worker(run):
    run.keep([block("w1", 0, [1, 2]), block("w2", 1, [9]), block("w1", 0, []), block("w2", 0, [3])])

    found = [
        (worker, columns.iteration.tolist())
        for number, worker, columns in counted_rows(run)
        if number == 0
    ]

    assert found == [("w1", [1, 2]), ("w2", [3])]


def test_a_run_has_one_coordinator(run, tmp_path):
    second = RunDirectory.find(str(tmp_path), "last")

    with pytest.raises(UsageError, match="has a coordinator already"):
        second.lock()
    run.close()
    second.lock()

    second.close()


def test_one_that_only_asks_for_the_coordinator_hinders_nobody(run, tmp_path):
    run.close()
    second = RunDirectory.find(str(tmp_path), "last")
    asked, told = threading.Event(), threading.Event()

    def ask() -> None:
        with (second.path / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            asked.set()
            told.wait(0.1)

    asking = threading.Thread(target=ask)
    asking.start()
    asked.wait()
    second.lock()

    asking.join()
    assert second.has_coordinator()
    second.close()


def test_whoever_takes_a_run_over_writes_behind_whole_records(run, tmp_path):
    run.decide([{"do": "open"}])
    run.keep([block("w1", 0, [1])])
    run.close()
    for name in ("journal", "blocks"):
        with (run.path / name).open("ab") as file:
            file.write(b"\xff\x00\x00\x00torn")

    again = RunDirectory.find(str(tmp_path), "last")
    again.lock()
    again.decide([{"do": "close"}])
    again.keep([block("w1", 0, [2])])
    again.close()

    assert [record["do"] for record in again.decisions()] == ["open", "close"]
    assert [columns.iteration.tolist() for *_, columns in counted_rows(again)] == [[1], [2]]


def test_a_run_cannot_be_made_twice(run, tmp_path):
    with pytest.raises(OsbenchError, match="cannot make the run directory"):
        RunDirectory.create(str(tmp_path), run.path.name)


def test_documents_are_replaced_in_one_step(run):
    run.write("summary.json", {"ok": 1})
    run.write("summary.json", {"ok": 2})

    assert json.loads((run.path / "summary.json").read_text()) == {"ok": 2}
    assert not list(run.path.glob("*.draft"))


@pytest.fixture
def runs(tmp_path):
    for name in ("20260101-120000-aaaa", "20260101-130000-bbbb", "20260102-120000-cccc"):
        RunDirectory.create(str(tmp_path), name).close()
    (tmp_path / "runs" / "notes.txt").write_text("not a run")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("last", "20260102-120000-cccc"),
        ("20260101-13", "20260101-130000-bbbb"),
        ("20260101-120000-aaaa", "20260101-120000-aaaa"),
    ],
)
def test_runs_are_found_by_id_by_its_beginning_and_as_the_last(runs, name, expected):
    assert RunDirectory.find(runs, name).path.name == expected


def test_an_id_that_begins_another_is_found(tmp_path):
    for name in ("one", "one-more"):
        RunDirectory.create(str(tmp_path), name).close()

    assert RunDirectory.find(str(tmp_path), "one").path.name == "one"


def test_a_beginning_of_several_names_them(runs):
    with pytest.raises(UsageError, match=r"could be any of 20260101-120000-aaaa, 20260101-13"):
        RunDirectory.find(runs, "20260101")


@pytest.mark.parametrize("name", ["2027", "last", "notes"])
def test_where_there_is_no_run_yet_that_is_said(tmp_path, name):
    with pytest.raises(
        UsageError, match=r"there is no run in .* yet; start one with `osbench-coord run`"
    ):
        RunDirectory.find(str(tmp_path), name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("2027", r"no run '2027' in .*; the newest is 20260102-1200"),
        ("lst", r"no run 'lst' in .*; did you mean last\?"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(runs, name, said):
    with pytest.raises(UsageError, match=said):
        RunDirectory.find(runs, name)


def test_an_empty_name_does_not_mean_the_only_run(tmp_path):
    RunDirectory.create(str(tmp_path), "20260101-120000-aaaa").close()

    with pytest.raises(UsageError, match=r"no run '' in .*; the newest is 20260101-120000-aaaa"):
        RunDirectory.find(str(tmp_path), "")


def test_all_runs_are_listed_oldest_first(runs, tmp_path):
    assert [run.path.name[:13] for run in RunDirectory.all(runs)] == [
        "20260101-1200",
        "20260101-1300",
        "20260102-1200",
    ]
    assert RunDirectory.all(str(tmp_path / "elsewhere")) == []


def test_a_run_tells_whether_it_has_a_coordinator(run):
    assert run.has_coordinator()

    run.close()

    assert not run.has_coordinator()
    assert not RunDirectory(run.path / "none").has_coordinator()


def test_documents_are_read_back(run):
    run.write("status.json", {"ok": 1}, sync=False)

    assert run.read("status.json") == {"ok": 1}
    assert run.read("summary.json") is None


def test_a_damaged_document_is_told(run):
    (run.path / "run.json").write_text("{")

    with pytest.raises(OsbenchError, match=r"run\.json is damaged"):
        run.read("run.json")


def test_a_run_is_deleted_once_nobody_coordinates_it(run):
    with pytest.raises(UsageError, match="is running"):
        run.delete()

    run.close()
    run.delete()

    assert not run.path.exists()
