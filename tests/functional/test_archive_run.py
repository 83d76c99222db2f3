"""Runs that are archived at their end: their node may vanish, and trends go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import blocks
from helpers.runs import Site
from servers import folder

pytestmark = pytest.mark.functional

GUIDE = "docs/archive.md"
DUMMY = ("--scenario", "Dummy.dummy", "--times", "20")
NAPS = """
version: 2
title: Naps
subtasks:
  - title: Naps
    scenario: {Dummy.dummy: {sleep: 0.001}}
    runner: {constant: {times: 20, concurrency: 2}}
"""


def archived(here: Site) -> list[dict[str, Any]]:
    done = here.call("runs", "list", "--archive", "team", "--json")
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def test_a_node_that_vanishes_keeps_its_runs_and_its_trend(guest: Site) -> None:
    first = guest.run(*DUMMY, "--archive", "team")
    assert first.code == 0
    run = first.result["run_id"]
    assert f"run {run} is now in the archive {guest.home / 'team'}" in first.err
    shutil.rmtree(guest.data / "runs")
    second = guest.run(*DUMMY, "--archive", "team")
    shutil.rmtree(guest.data / "runs")
    shutil.rmtree(guest.data / "archives")

    trend = guest.call("trends", "--archive", "team", "--json")
    compared = guest.call("compare", run, "last", "--archive", "team")
    pulled = guest.call("runs", "pull", "team")
    shown = guest.call("runs", "show", run)

    ids = [run, second.result["run_id"]]
    assert [one["run"] for one in archived(guest)] == ids[::-1]
    assert [one["run_id"] for one in json.loads(trend.out)["trends"][0]["runs"]] == ids
    assert compared.code == 0, compared.err
    assert f"before {run}" in compared.out
    assert "2 runs pulled into" in pulled.err
    assert shown.code == 0, shown.err


def test_runs_of_a_directory_and_repeats_are_archived_each(guest: Site) -> None:
    for name in ("a", "b"):
        guest.write(f"nightly/{name}.yaml", NAPS.replace("Naps", name))

    done = guest.coord("run", "nightly", "--archive", "team", "--quiet")
    repeated = guest.coord("run", *DUMMY, "--repeat", "2", "--archive", "team", "--quiet")

    assert (done.code, repeated.code) == (0, 0), done.err + repeated.err
    tasks = sorted(one["task"] for one in archived(guest))
    assert len(tasks) == 4
    assert tasks[-2:] == ["a", "b"]


def test_a_run_that_breaks_off_is_archived_too(guest: Site) -> None:
    options = ("--workers", "64", "--wait-for-workers", "0.5", "--archive", "team")
    done = guest.call("run", *DUMMY, *options)

    (row,) = archived(guest)
    assert done.code == row["exit"] == 2, done.err
    assert row["state"] == "broken off"
    assert "worker" in row["why"]


def test_a_push_that_fails_is_told_and_the_run_is_kept(guest: Site) -> None:
    guest.write("team/runs", "no folder")

    done = guest.run(*DUMMY, "--archive", "team")

    run = done.result["run_id"]
    again = f"`osbench-coord runs push {run} {guest.home / 'team'}` tries again"
    assert done.code == 5
    assert done.sums["ok"] == 20
    assert f"Warning: archive failed: the archive {guest.home / 'team'}: cannot write" in done.err
    assert again in done.err
    assert again in done.result["notes"][0]
    (guest.home / "team" / "runs").unlink()
    pushed = guest.call("runs", "push", "team")
    assert pushed.code == 0, pushed.err
    assert [one["run"] for one in archived(guest)] == [run]


def test_an_archive_that_cannot_be_read_is_known_before_the_run(guest: Site) -> None:
    guest.write("team", "no folder")

    for url, said in (
        ("team", "cannot list index: not a directory"),
        ("http://127.0.0.1:1/runs", "osbench only reads over HTTP"),
        ("s3://key:hunter2@bucket/runs", "a URL with a password is seen by others"),
    ):
        done = guest.call("run", *DUMMY, "--archive", url)

        assert done.code == 2
        assert said in done.err
        assert "hunter2" not in done.err
        assert "Traceback" not in done.err
    assert not (guest.data / "runs").exists()


def test_the_guide() -> None:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        machine = Machine(home, folder=desk, forked=True)

        with with_worker(machine):
            _, vanished, nightly, compared = (machine.run(one) for one in blocks("archive", GUIDE))

        assert "Dummy.dummy" in vanished
        assert "1 of at least 8 runs" in vanished or "too few" in vanished
        assert "2 of at least 8 runs: too few to check the last one." in nightly
        assert "before " in compared
        assert "exit code 0" in compared.lower() or "Dummy.dummy" in compared
        assert len(list(Path(desk, "team-runs", "index").iterdir())) == 2
