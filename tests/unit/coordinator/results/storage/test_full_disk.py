"""A disk that is full: nothing half written, nothing acted on, the reason and the end kept.

In a file system of 3 MiB of its own, mounted in a namespace of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
MOUNT = 'mount -t tmpfs -o size=3m none "$1" && exec "$2" "$3" "$1"'


@pytest.fixture
def run_on_small_disk(tmp_path: Path) -> Any:
    tried = shutil.which("unshare") and subprocess.run(
        [*IN_NAMESPACE, "true"], check=False, capture_output=True
    )
    if not tried or tried.returncode:
        assert os.environ.get("CI") != "true", "this needs unshare and user namespaces"
        pytest.skip("needs unshare and user namespaces")

    def run(script: str) -> dict[str, Any]:
        disk, file = tmp_path / "disk", tmp_path / "script.py"
        disk.mkdir()
        file.write_text(PREPARATION + script)
        command = [*IN_NAMESPACE, "sh", "-c", MOUNT, "sh", str(disk), sys.executable, str(file)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        found["log"] = done.stderr
        return found

    return run


PREPARATION = """
import json, os, sys
from pathlib import Path
from osbench.common.errors import OsbenchError, StorageError
from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.progress import ProgressRecorder, contexts_at
from osbench.coordinator.results.storage.run_directory import RunDirectory

disk = Path(sys.argv[1])
told = {}

def fill():
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass

def error_of(call):
    try:
        call()
    except OsbenchError as error:
        return [type(error).__name__, str(error), error.exit_code]
"""


def test_what_ends_a_run_is_written_with_the_reserve(run_on_small_disk: Any) -> None:
    told = run_on_small_disk(
        """
directory = RunDirectory.create(str(disk), "r")
directory.decide([{"do": "open", "epoch": 1}])
body = {"columns": {}, "workload": 0, "incarnation": "w"}
directory.keep([{**body, "number": 1, "text": "a"}])
fill()
block = {**body, "number": 2, "text": os.urandom(9000)}
told["keep"] = error_of(lambda: directory.keep([block]))
told["close"] = error_of(lambda: directory.decide([{"do": "close"}]))
failure.keep(directory, StorageError(told["keep"][1]))
told["decisions"] = list(directory.decisions())
told["bytes"] = (directory.path / "blocks").stat().st_size
told["numbers"] = [body["number"] for body in directory.blocks()]
told["reason"] = failure.reason(directory)
told["exit"] = failure.exit_code(directory)
told["drafts"] = [path.name for path in directory.path.glob("*.draft")]
directory.close()
directory.lock()
directory.close()
print(json.dumps(told))
"""
    )

    name, message, code = told["keep"]
    assert (name, code) == ("StorageError", 3)
    assert message.endswith("/runs/r/blocks: no space left on device; make room there")
    assert told["close"] is None
    assert told["decisions"] == [
        {"do": "open", "epoch": 1, "blocks": 0, "bytes": 0},
        {"do": "close", "blocks": 1, "bytes": told["bytes"]},
    ]
    assert told["numbers"] == [1]
    assert (told["reason"], told["exit"]) == (message, 3)
    assert told["drafts"] == []


def test_a_decision_that_is_not_on_disk_is_refused(run_on_small_disk: Any) -> None:
    told = run_on_small_disk(
        """
directory = RunDirectory.create(str(disk), "r")
fill()
large = [{"do": "cut", "dues": os.urandom(5000)}]
told["first"] = error_of(lambda: directory.decide(large))
fill()
told["second"] = error_of(lambda: directory.decide(large))
told["decisions"] = len(list(directory.decisions()))
print(json.dumps(told))
"""
    )

    for each in ("first", "second"):
        assert told[each][1].endswith("/runs/r/journal: no space left on device; make room there")
    assert told["decisions"] == 0


def test_a_progress_that_cannot_be_noted_is_told_once_and_takes_no_reserve(
    run_on_small_disk: Any,
) -> None:
    told = run_on_small_disk(
        """
import osbench.coordinator.results.storage.progress as progress
progress.STATUS_S = 0.0
directory = RunDirectory.create(str(disk), "r")
fill()
shown = []
recorder = ProgressRecorder(shown.append, directory)
for second in range(3):
    recorder(contexts_at("x" * 9000, 0, 1, float(second)))
told["shown"] = len(shown)
told["reserve"] = (directory.path / "reserve").stat().st_size
print(json.dumps(told))
"""
    )

    assert (told["shown"], told["reserve"]) == (3, 1 << 20)
    assert told["log"].count("no space left on device") == 1


def test_a_run_without_room_for_its_reserve_does_not_begin(run_on_small_disk: Any) -> None:
    told = run_on_small_disk(
        """
fill()
os.truncate(disk / "filler", (disk / "filler").stat().st_size - 300_000)
told["error"] = error_of(lambda: RunDirectory.create(str(disk), "r"))
told["left"] = [path.name for path in (disk / "runs").iterdir()]
print(json.dumps(told))
"""
    )

    name, message, code = told["error"]
    assert (name, code) == ("OsbenchError", 2)
    assert "/runs/r: no space left on device; make room there" in message
    assert told["left"] == []
