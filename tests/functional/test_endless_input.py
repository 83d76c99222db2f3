"""Files, devices and pipes without an end are read up to a bound, and said to be too large."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.commands import coord, environment
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

TASK = '{"version": 2, "title": "t", "subtasks": []}'


def started(folder: Path, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Output of a command that opens files itself."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        ["osbench-coord", *arguments],
        env=environment(folder),
        cwd=folder,
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["validate", "/dev/zero"], "is larger than 16 MiB"),
        (["run", "/dev/zero"], "is larger than 16 MiB"),
        (["validate", "task.json", "--task-args-file", "/dev/zero"], "is larger than 16 MiB"),
        (["deployment", "create", "--name", "x", "--file", "/dev/zero"], "is larger than 16 MiB"),
        (["init", "--from-har", "/dev/zero", "new.yaml"], "is larger than 256 MiB"),
        (["import", "/dev/zero"], "is larger than 512 MiB"),
        (["--config-file", "/dev/zero", "validate", "task.json"], "no regular file"),
        (
            ["validate", "task.json", "--plugin-path", "/dev/zero"],
            "neither a .py file nor a folder",
        ),
    ],
    ids=lambda one: "-".join(one)[:40].replace("/", "") if isinstance(one, list) else "",
)
def test_a_device_without_an_end_is_refused(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "task.json").write_text(TASK)

    done = coord(tmp_path, *arguments)

    assert done.returncode == 2, done
    assert said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.fixture
def yes() -> Iterator[int]:
    """The end of a pipe into which somebody writes for ever."""
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        yield writer.stdout.fileno()
        writer.kill()


def test_standard_input_is_read_up_to_a_bound(tmp_path: Path, yes: int) -> None:
    done = started(tmp_path, "validate", "-", stdin=yes)

    assert done.returncode == 2
    assert "cannot be read: is larger than 16 MiB" in done.stdout + done.stderr


def test_a_pipe_of_a_shell_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        file.write(TASK)

    done = started(tmp_path, "validate", f"/dev/fd/{reading}", pass_fds=[reading])
    os.close(reading)

    assert "cannot be read" not in done.stdout + done.stderr
    assert "subtasks" in done.stdout + done.stderr
