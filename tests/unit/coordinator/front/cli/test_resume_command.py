"""The command `resume` on a run that is finished, or that has a coordinator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from helpers.cli_commands import command
from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    """A run that has its report, and its plan: its coordinator was killed in between."""
    found = RunDirectory.create(str(tmp_path), "20260401-a")
    found.write("summary.json", to_json(full_report()))
    (found.path / "plan").touch()
    yield found
    found.close()


def resume(tmp_path: Path, *args: str) -> Result:
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    group = Group(commands=[command("resume")])
    return CliRunner().invoke(
        group, ["resume", "20260401-a", "--json", *args, "--config-file", str(conf)]
    )


def test_the_report_of_a_finished_run_is_told_and_exported(
    tmp_path: Path, directory: RunDirectory
) -> None:
    directory.close()
    summary, page = to_json(full_report()), tmp_path / "again.json"

    done = resume(tmp_path, "--export", f"json={page}")

    assert json.loads(done.stdout) == json.loads(json.dumps(summary))
    assert done.exit_code == summary["exit_code"]
    assert "run 20260401-a is finished" in done.output
    assert json.loads(page.read_text("utf-8"))["run_id"] == summary["run_id"]
    assert not (directory.path / "plan").exists()


def test_a_run_that_has_a_coordinator_is_not_resumed(
    tmp_path: Path, directory: RunDirectory
) -> None:
    done = resume(tmp_path)

    assert done.exit_code == 2
    assert "run 20260401-a has a coordinator already" in done.output
    assert (directory.path / "plan").exists()


def test_a_run_that_ends_while_its_lock_is_waited_for_has_its_report_told(
    tmp_path: Path, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = to_json(full_report())
    (directory.path / "summary.json").unlink()
    directory.close()
    lock = RunDirectory.lock

    def ends(one: RunDirectory) -> None:
        lock(one)
        one.write("summary.json", summary)
        (one.path / "plan").unlink()

    monkeypatch.setattr(RunDirectory, "lock", ends)

    done = resume(tmp_path)

    assert json.loads(done.stdout) == json.loads(json.dumps(summary))
    assert "run 20260401-a is finished" in done.output
