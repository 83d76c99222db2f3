"""The folder of task files: nothing but its own regular files, and their problems."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.front.web import task_folder
from osbench.coordinator.front.web.task_folder import TaskFolder

GOOD = {"Dummy.dummy": [{"args": {"sleep": 0}, "runner": {"constant": {"times": 1}}}]}


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    found = TaskFolder(str(tmp_path))
    found.path.mkdir()
    return found


def test_task_files_are_offered_by_name(folder: TaskFolder) -> None:
    for name in ("b.yaml", "a.yml", "c d.json", "notes.txt", ".hidden.yaml", "-x.yaml", "d.YAML"):
        (folder.path / name).write_text("x")
    (folder.path / "folder.yaml").mkdir()
    os.mkfifo(folder.path / "pipe.yaml")
    (folder.path / "link.yaml").symlink_to(folder.path / "b.yaml")

    assert folder.names() == ["a.yml", "b.yaml", "c d.json"]


def test_without_the_folder_nothing_is_offered(tmp_path: Path) -> None:
    assert TaskFolder(str(tmp_path)).names() == []


def test_very_many_files_are_bounded(folder: TaskFolder) -> None:
    for number in range(task_folder.MOST + 5):
        (folder.path / f"{number:04}.yaml").touch()

    assert len(folder.names()) == task_folder.MOST


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../osbench.conf", "../secret.yaml", "sub/x.yaml", "/etc/passwd", "link.yaml",
     "absent.yaml", "a.yaml\n", "a.yaml\x00", "pipe.yaml", "--help", "x" * 5000 + ".yaml"],
)  # fmt: skip
def test_nothing_else_is_found(folder: TaskFolder, name: str) -> None:
    (folder.path / "a.yaml").touch()
    (folder.path.parent / "secret.yaml").touch()
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "x.yaml").touch()
    (folder.path / "link.yaml").symlink_to("/etc/passwd")
    os.mkfifo(folder.path / "pipe.yaml")

    with pytest.raises(UsageError, match="there is no task file"):
        folder.find(name)


def test_a_file_is_checked_as_validate_does(folder: TaskFolder) -> None:
    (folder.path / "good.json").write_text(json.dumps(GOOD))
    (folder.path / "bad.yaml").write_text("Dummy.absent: [{runner: {constant: {times: many}}}]")

    good, bad = folder.check("good.json"), folder.check("bad.yaml")

    assert good.ok
    assert good.to_json()["problems"] == []
    assert not bad.ok
    assert any("Dummy.absent" in message for _, message in bad.problems)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import sys; sys.exit('Error: token=planted-1 is wrong')", "Error: token="),
        ("print('[]')", "the check ended with 0"),
        ("print('{}')", "the check ended with 0"),
        ("import time; time.sleep(60)", "has not ended within 0.2 s"),
    ],
)
def test_a_check_that_goes_wrong_is_a_problem(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setattr(task_folder, "own_command", lambda *_: [sys.executable, "-c", script])
    if "sleep" in script:
        monkeypatch.setattr(task_folder, "CHECK_S", 0.2)
    (folder.path / "a.yaml").touch()

    found = folder.check("a.yaml")

    assert not found.ok
    ((_, told),) = found.problems
    assert told.startswith(message) or message in told
    assert "planted-1" not in told


def test_problems_are_bounded_and_masked(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import json; long = 'x' * 9000\n"
        "problem = {'place': long, 'message': 'password=planted-1 ' + long}\n"
        "print(json.dumps({'problems': [problem] * 999, 'notes': []}))"
    )
    monkeypatch.setattr(task_folder, "own_command", lambda *_: [sys.executable, "-c", script])
    (folder.path / "a.yaml").touch()

    found = folder.check("a.yaml")

    assert len(found.problems) == 50
    assert len(json.dumps(found.to_json())) < 100_000
    assert "planted-1" not in json.dumps(found.to_json())
