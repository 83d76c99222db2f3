"""Archives of runs: pushed, read and fetched, also when something fails half way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.kept_runs import kept_run
from helpers.made_runs import made_run
from helpers.readme import REPOSITORY
from osbench.common.errors import (
    ArchiveError,
    DamagedArchive,
    DamagedRun,
    RefusedRun,
    StorageError,
    UsageError,
)
from osbench.coordinator.results.storage.digests import COVERED, DIGESTS
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import summary_of
from osbench.edges.history.archives.archive_store import FolderStore
from osbench.edges.history.archives.run_archive import RunArchive
from servers.child import PATIENCE_S

OTHER = "20260402-101500-beef"


class CutStore(FolderStore):
    """A folder whose connection is cut after so many calls."""

    def __init__(self, root: Path, calls: int) -> None:
        super().__init__(root)
        self._calls = calls

    def _call(self) -> None:
        self._calls -= 1
        if self._calls < 0:
            raise ArchiveError(f"the archive {self.place}: cannot go on: connection reset")

    def listed(self, folder: str) -> dict[str, int]:
        self._call()
        return super().listed(folder)

    def size(self, name: str) -> int | None:
        self._call()
        return super().size(name)

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        self._call()
        return super().read(names)

    def get(self, name: str, path: Path) -> bool:
        self._call()
        return super().get(name, path)

    def put(self, path: Path, name: str) -> None:
        self._call()
        super().put(path, name)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A data directory."""
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Another one."""
    return tmp_path / "there"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """The folder of an archive."""
    return tmp_path / "team"


def archive(team: Path, data: Path, warned: list[str] | None = None) -> RunArchive:
    warn = pytest.fail if warned is None else warned.append
    return RunArchive(str(team), str(data), warn)  # type: ignore[arg-type]


def content(path: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()
    }


def drafts(data: Path) -> list[Path]:
    return list((data / "archives" / "drafts").glob("*"))


def unfinished(data: Path, name: str, why: str = "Redis was away") -> RunDirectory:
    """A run that was broken off."""
    run = RunDirectory.create(str(data), name)
    run.write("run.json", {"run_id": name, "started_at": 1.0, "task": "T", "tags": []})
    run.decide([{"do": "open", "run": name, "epoch": 1}])
    run.write("failure.json", {"message": why, "exit_code": 3})
    run.close()
    return RunDirectory(run.path)


def test_a_run_is_pulled_as_it_was_pushed(here: Path, there: Path, team: Path) -> None:
    run = kept_run(here, count=500)
    (run.path / "contexts").write_bytes(b"signed")
    (run.path / "log").write_text('{"text": "hello"}\n')

    assert archive(team, here).push(run)
    other = archive(team, there)
    (found,) = other.runs()
    assert other.pull(found)

    pulled = RunDirectory.find(str(there), "last")
    kept = {*COVERED, DIGESTS, "log"}
    assert content(pulled.path) == {
        name: one for name, one in content(run.path).items() if name in kept
    }
    assert pulled.files.problems() == []
    assert summary_of(pulled) == summary_of(run)
    assert drafts(here) == drafts(there) == []
    assert pulled.path.stat().st_mode & 0o777 == 0o700


def test_the_same_run_twice_is_one_run(here: Path, team: Path) -> None:
    run = kept_run(here, count=500)

    assert archive(team, here).push(run)
    before = content(team)
    assert not archive(team, here).push(run)

    assert content(team) == before


def test_another_run_of_that_id_is_refused_and_the_first_stays(
    here: Path, there: Path, team: Path
) -> None:
    archive(team, here).push(kept_run(here, count=500))
    before = content(team)

    with pytest.raises(RefusedRun, match=r"has a run .* already, of different content"):
        archive(team, there).push(kept_run(there, seed=2, count=500))

    assert content(team) == before


def test_two_writers_that_see_nothing_of_each_other_lose_nothing(
    here: Path, there: Path, team: Path
) -> None:
    """Push after both have listed the index, before either has written."""
    first, second = kept_run(here, count=500), kept_run(there, seed=2, count=500)
    elsewhere = team.with_name("elsewhere")
    archive(team, here).push(first)
    archive(elsewhere, there).push(second)
    for path in elsewhere.rglob("*"):
        if path.is_file():
            shutil.copy(path, team / path.relative_to(elsewhere))

    warned: list[str] = []
    (found,) = archive(team, there, warned).runs()

    assert len(warned) == 1
    assert "has two runs" in warned[0]
    assert found.fetch().files.problems() == []


def test_a_run_that_goes_on_or_never_began_is_refused(here: Path, team: Path) -> None:
    run = unfinished(here, OTHER)
    run.lock(writes=False)
    try:
        with pytest.raises(UsageError, match="is still running; push it when it is over"):
            archive(team, here).push(RunDirectory(run.path))
    finally:
        run.close()
    (run.path / "run.json").unlink()

    with pytest.raises(UsageError, match="did not begin"):
        archive(team, here).push(RunDirectory(run.path))

    assert content(team) == {}


@pytest.mark.parametrize("name", ["a b", "x" * 220, ".hidden"])
def test_a_run_whose_id_is_no_name_in_an_archive_is_refused(
    here: Path, team: Path, name: str
) -> None:
    with pytest.raises(RefusedRun, match="cannot be archived: its id or its record"):
        archive(team, here).push(unfinished(here, name))

    assert content(team) == {}


@pytest.mark.parametrize("manifest", [b"\xff", b"[]", b""])
def test_a_run_whose_request_cannot_be_read_is_refused(
    here: Path, team: Path, manifest: bytes
) -> None:
    run = unfinished(here, OTHER)
    (run.path / "run.json").write_bytes(manifest)

    with pytest.raises((DamagedRun, RefusedRun)):
        archive(team, here).push(run)

    assert content(team) == {}


def test_a_damaged_run_is_refused(here: Path, team: Path) -> None:
    run = kept_run(here, count=500)
    (run.path / "timeline").write_bytes(b"x")

    with pytest.raises(DamagedRun, match="timeline"):
        archive(team, here).push(run)

    assert content(team) == {}


def test_a_run_that_ended_later_takes_the_place_of_what_was_archived_of_it(
    here: Path, there: Path, team: Path
) -> None:
    shared = archive(team, here)
    shared.push(unfinished(here, OTHER))
    (found,) = shared.runs()
    assert not found.record.finished
    assert found.fetch().read("failure.json") == {"message": "Redis was away", "exit_code": 3}
    made_run(there, 100, run=OTHER)

    archive(team, there).push(RunDirectory.find(str(there), OTHER))

    (found,) = shared.runs()
    assert found.record.finished
    assert summary_of(found.fetch()) is not None
    with pytest.raises(RefusedRun):
        shared.push(RunDirectory.find(str(here), OTHER))


def test_a_run_that_is_here_is_left_alone(here: Path, there: Path, team: Path) -> None:
    archive(team, here).push(kept_run(here, count=500))
    mine = kept_run(there, seed=2, count=500)
    before = content(mine.path)
    other = archive(team, there)

    assert not other.pull(other.runs()[0])

    assert content(mine.path) == before


@pytest.mark.parametrize("calls", range(7))
def test_a_push_that_is_cut_anywhere_leaves_no_half_run_and_is_done_again(
    here: Path, there: Path, team: Path, calls: int
) -> None:
    run = kept_run(here, count=500)
    before = content(run.path)
    cut = RunArchive("", str(here), pytest.fail, store=CutStore(team, calls))  # type: ignore[arg-type]

    whole = calls >= 4
    if whole:
        assert cut.push(run)
    else:
        with pytest.raises(ArchiveError, match="connection reset"):
            cut.push(run)

    assert content(run.path) == before
    assert drafts(here) == []
    other = archive(team, there)
    assert len(other.runs()) == whole
    assert archive(team, here).push(run) is not whole
    assert [one.fetch().files.problems() for one in other.runs()] == [[]]


@pytest.mark.parametrize("calls", range(4))
def test_a_pull_that_is_cut_anywhere_leaves_nothing_and_is_done_again(
    here: Path, there: Path, team: Path, calls: int
) -> None:
    archive(team, here).push(kept_run(here, count=500))
    cut = RunArchive("", str(there), pytest.fail, store=CutStore(team, calls))  # type: ignore[arg-type]

    with pytest.raises(ArchiveError, match="connection reset"):
        cut.pull(cut.runs()[0])

    assert RunDirectory.all(str(there)) == []
    other = archive(team, there)
    assert other.pull(other.runs()[0])
    assert drafts(there) == []


def test_an_upload_that_is_shorter_than_it_was_is_noticed(here: Path, team: Path) -> None:
    class Short(FolderStore):
        def put(self, path: Path, name: str) -> None:
            os.truncate(path, path.stat().st_size - 1)
            super().put(path, name)

    cut = RunArchive("", str(here), pytest.fail, store=Short(team))  # type: ignore[arg-type]

    with pytest.raises(ArchiveError, match="bytes after it was written; push the run again"):
        cut.push(kept_run(here, count=500))

    assert archive(team, here).runs() == []


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("harm", [_flip, _cut, Path.unlink])
def test_a_damaged_packed_run_is_named_and_pushed_again(
    here: Path, there: Path, team: Path, harm: Any
) -> None:
    run = kept_run(here, count=500)
    archive(team, here).push(run)
    (packed,) = (team / "runs").iterdir()
    harm(packed)
    other = archive(team, there)
    (found,) = other.runs()

    with pytest.raises(DamagedArchive, match=rf"{packed.name}: .*runs push {run.path.name}"):
        other.pull(found)

    assert RunDirectory.all(str(there)) == []
    assert drafts(there) == []
    # a cut one is known by its size; the content is not read for it
    if harm is _flip:
        packed.unlink()
    assert archive(team, here).push(run)
    assert other.pull(found)


@pytest.mark.parametrize("harm", [_flip, _cut])
def test_a_damaged_record_is_left_out_with_a_warning(
    here: Path, there: Path, team: Path, harm: Any
) -> None:
    archive(team, here).push(kept_run(here, count=500))
    (record,) = (team / "index").iterdir()
    harm(record)
    made_run(here, 100, run=OTHER)
    archive(team, here, []).push(RunDirectory.find(str(here), OTHER))
    warned: list[str] = []
    other = archive(team, there, warned)

    assert [one.run_id for one in other.runs()] == [OTHER]
    assert [one.run_id for one in other.runs()] == [OTHER]

    assert len(warned) == 1
    assert warned[0].startswith(f"left out: the archive {team}: index/{record.name}: ")


def test_a_record_that_is_too_large_is_not_read(
    here: Path, there: Path, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(team, here).push(kept_run(here, count=500))
    monkeypatch.setattr("osbench.edges.history.archives.run_archive.MOST_PACKED", 100)
    warned: list[str] = []

    assert archive(team, there, warned).runs() == []

    assert "it has " in warned[0]


def test_foreign_files_are_passed_over(here: Path, there: Path, team: Path) -> None:
    archive(team, here).push(kept_run(here, count=500))
    (team / "README.md").write_text("ours")
    (team / "index" / "README.md").write_text("ours")
    (team / "index" / ".draft").write_text("half")
    (team / "index" / "folder").mkdir()
    (team / "runs" / "20260401-101500-ffff.0123456789abcdef.tar.zst").write_text("half a push")

    assert len(archive(team, there).runs()) == 1


def test_records_and_runs_are_read_once(here: Path, there: Path, team: Path) -> None:
    archive(team, here).push(kept_run(here, count=500))
    (found,) = archive(team, there).runs()
    found.fetch()

    # of a list, and nothing else
    again = RunArchive("", str(there), pytest.fail, store=CutStore(team, 1))  # type: ignore[arg-type]
    (found,) = again.runs()

    assert summary_of(found.fetch()) is not None


def test_a_damaged_copy_of_a_record_is_read_again(here: Path, there: Path, team: Path) -> None:
    archive(team, here).push(kept_run(here, count=500))
    archive(team, there).runs()
    (copy,) = (there / "archives").glob("*/index/*")
    copy.write_bytes(b"x")

    assert len(archive(team, there).runs()) == 1


def test_a_run_for_which_there_is_no_room_is_refused(
    here: Path, there: Path, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(team, here).push(kept_run(here, count=500))
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    other = archive(team, there)

    with pytest.raises(StorageError, match=r"needs .* in .*drafts, which has 1.00 kB left"):
        other.pull(other.runs()[0])

    assert RunDirectory.all(str(there)) == []


def test_a_full_disk_while_it_is_packed_is_one_message(
    here: Path, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    run = kept_run(here, count=500)
    monkeypatch.setattr("osbench.edges.history.archives.run_archive.pack", full)

    with pytest.raises(StorageError, match=r"cannot pack run .*: no space left on device"):
        archive(team, here).push(run)

    assert content(team) == {}
    assert drafts(here) == []


def test_a_place_that_may_not_be_written_is_one_message(here: Path, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")

    with pytest.raises(ArchiveError, match="cannot list index: not a directory"):
        archive(place, here).push(kept_run(here, count=500))


#: Pushes the runs of a data directory, all at once with others that wait for the same file.
_WRITER = """
import sys, time
from pathlib import Path
from osbench.edges.history.archives.run_archive import RunArchive
from osbench.coordinator.results.storage.run_directory import RunDirectory
team, data, go = sys.argv[1:]
print("ready", flush=True)
while not Path(go).exists():
    time.sleep(0.001)
archive = RunArchive(team, data, print)
for run in RunDirectory.all(data):
    archive.push(run)
print("done", flush=True)
"""


@pytest.mark.parametrize("writers", [2, pytest.param(8, marks=pytest.mark.dear)])
def test_writers_at_once_lose_nothing(tmp_path: Path, writers: int) -> None:
    """Push own runs of each writer, and one that all of them have."""
    go, team = tmp_path / "go", tmp_path / "team"
    same = made_run(tmp_path / "same", 50, run="20260401-000000-0000")
    wanted = {same.path.name}
    children = []
    for writer in range(writers):
        data = tmp_path / str(writer)
        shutil.copytree(same.path, data / "runs" / same.path.name)
        for number in range(3):
            name = f"2026040{number + 1}-1015{writer:02}-abcd"
            made_run(data, 50, run=name, seed=writer)
            wanted.add(name)
        command = [sys.executable, "-c", _WRITER, str(team), str(data), str(go)]
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env))
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"

    go.touch()

    for child in children:
        assert child.communicate(timeout=PATIENCE_S)[0] == "done\n"
        assert child.returncode == 0
    found = archive(team, tmp_path / "reader").runs()
    assert {one.run_id for one in found} == wanted
    assert [one.fetch().files.problems() for one in found] == [[]] * len(wanted)
    assert len(list((team / "runs").iterdir())) == len(wanted)
    assert not list(team.rglob(".*"))


def test_packed_runs_open_with_tar(here: Path, team: Path, tmp_path: Path) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    run = kept_run(here, count=500)
    archive(team, here).push(run)
    (packed,) = (team / "runs").iterdir()

    subprocess.run(["tar", "--zstd", "-xf", packed, "-C", tmp_path], check=True)

    summary = tmp_path / run.path.name / "summary.json"
    assert json.loads(summary.read_text())["run_id"] == run.path.name
