"""Files of a run directory that is somebody else's: no pipe is waited for, no device read."""

from __future__ import annotations

import os

import pytest

from osbench.common.errors import OsbenchError
from osbench.coordinator.load.run.resumption.outcome_notes import UNREAD, saved_notes
from osbench.coordinator.results.storage import run_directory
from osbench.coordinator.results.storage.frames import read_frames
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline

pytestmark = pytest.mark.timeout(60)

REPLACED = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
}


@pytest.fixture(params=REPLACED)
def replaced(request, tmp_path):
    directory = RunDirectory.create(str(tmp_path), "r")

    def replace(name):
        (directory.path / name).unlink(missing_ok=True)
        REPLACED[request.param](directory.path / name)
        return directory

    yield replace
    directory.close()


def test_a_document_that_is_no_file_is_told(replaced):
    with pytest.raises(OsbenchError, match=r"cannot read .*run\.json"):
        replaced("run.json").read("run.json")


def test_records_that_are_no_file_are_told(replaced):
    with pytest.raises(OsbenchError, match=r"cannot read .*journal"):
        list(read_frames(replaced("journal").path / "journal"))


def test_what_can_be_missing_is_left_out(replaced):
    assert read_timeline(replaced("timeline")) is None
    problem = saved_notes(replaced("notes")).problem
    assert problem.endswith(f"notes cannot be read: {UNREAD}")


def test_a_document_that_is_too_large_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(run_directory, "DOCUMENT_BYTES", 100)
    directory = RunDirectory.create(str(tmp_path), "r")
    (directory.path / "run.json").write_text("{" + " " * 200 + "}")

    with pytest.raises(OsbenchError, match=r"run\.json: File too large"):
        directory.read("run.json")
    directory.close()
