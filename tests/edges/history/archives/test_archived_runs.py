"""Runs of an archive in the list of a browser, and their pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from helpers.kept_runs import kept_run
from helpers.made_runs import made_run
from helpers.web import TOKENS, serving
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.web import runs_shown
from osbench.edges.history.archives.run_archive import RunArchive

RUNS = ["20260401-101500-abcd", "20260402-101500-abcd", "20260403-101500-abcd"]
BEARER = {"Authorization": f"Bearer {TOKENS.token}"}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """An archive of three runs, whose node is gone."""
    data, team = tmp_path / "gone", tmp_path / "team"
    shared = RunArchive(str(team), str(data), pytest.fail)  # type: ignore[arg-type]
    for seed, name in enumerate(RUNS, 1):
        shared.push(kept_run(data, run=name, seed=seed, count=2_000))
    shutil.rmtree(data)
    return team


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The data directory, with the last of these runs and another one."""
    data = tmp_path / "here"
    kept_run(data, run=RUNS[2], seed=3, count=2_000)
    made_run(data, 100, run="20260404-101500-abcd")
    return data


@pytest.fixture
def client(here: Path, team: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    monkeypatch.setattr(runs_shown, "REREAD_S", 0.0)
    archive = RunArchive(str(team), str(here), [].append)
    with (
        serving(here, archive=archive) as server,
        httpx.Client(base_url=server.url, timeout=60, headers=BEARER) as found,
    ):
        yield found


def test_the_list_has_the_runs_of_both_each_once(client: httpx.Client, here: Path) -> None:
    page = client.get("/").text
    searched = client.get("/?q=20260402").text

    for name in (*RUNS, "20260404-101500-abcd"):
        assert page.count(f'<a href="/runs/{name}">') == 1
    assert "4 runs, 0 running" in page
    assert page.count('<span class="dim">archive</span>') == 2
    assert "1 of 4 runs" in searched
    # nothing is fetched for a list
    assert list(here.glob("archives/*/runs/*")) == []


def test_a_run_of_the_archive_is_fetched_when_it_is_opened(
    client: httpx.Client, here: Path
) -> None:
    report = client.get(f"/runs/{RUNS[1]}")
    again = client.get(f"/runs/{RUNS[1]}")
    absent = client.get("/runs/20990101-000000-none")

    assert report.status_code == again.status_code == 200
    assert RUNS[1] in report.text
    assert f'href="/compare?run={RUNS[0]}&amp;run={RUNS[1]}"' in report.text
    assert absent.status_code == 404
    assert [one.name for one in here.glob("archives/*/runs/*/*")] == [RUNS[1]]
    assert len(RunDirectory.all(str(here))) == 2


def test_runs_of_both_are_compared_and_make_a_trend(client: httpx.Client, here: Path) -> None:
    trend = client.get(f"/runs/{RUNS[0]}/trends")
    compared = client.get("/compare", params={"run": [RUNS[0], RUNS[2]]})

    assert trend.status_code == compared.status_code == 200
    for name in RUNS:
        assert name in trend.text
    for name in (RUNS[0], RUNS[2]):
        assert name in compared.text


def test_an_archive_that_goes_away_leaves_what_is_known(client: httpx.Client, team: Path) -> None:
    client.get("/")
    shutil.rmtree(team)
    team.write_text("no folder")

    page = client.get("/").text
    opened = client.get(f"/runs/{RUNS[0]}")

    assert "4 runs, 0 running; the archive" in page
    assert "cannot list index" in page
    assert opened.status_code == 409
    assert "cannot read runs/" in opened.text
    assert "Traceback" not in opened.text


def test_what_is_pushed_later_is_shown(client: httpx.Client, team: Path, tmp_path: Path) -> None:
    client.get("/")
    later = made_run(tmp_path / "later", 50, run="20260405-101500-abcd")
    archive = RunArchive(str(team), str(tmp_path / "later"), pytest.fail)  # type: ignore[arg-type]
    archive.push(RunDirectory(later.path))

    assert "/runs/20260405-101500-abcd" in client.get("/").text
