"""What pages of runs are fed with: figures now, charts as often as they are cheap, the end."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.made_runs import made_run
from helpers.shown_page import page_of
from helpers.web import TOKENS, held, serving, snapshot, worker_progress
from osbench.coordinator.front.web import live_documents
from osbench.coordinator.front.web.feed import apply_change, change
from osbench.coordinator.front.web.live_documents import RunDocument, state_line
from osbench.coordinator.report.html import live_parts
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import TIMELINE

BEARER = {"Authorization": f"Bearer {TOKENS.token}"}


@pytest.fixture
def going_on(tmp_path: Path) -> Iterator[RunDirectory]:
    """A run with results and a coordinator."""
    run = made_run(tmp_path, 2000)
    resumable.begin_again(run)
    status = dataclasses.asdict(snapshot(rows=(worker_progress(),)))
    with held(run):
        run.write("status.json", status)
        yield run


def test_each_part_of_the_page_that_is_fed_is_on_the_page(going_on: RunDirectory) -> None:
    facts = read_facts(going_on)

    page = page_of(facts, live=True)
    overview, charts = live_parts(gather(facts, live=True))

    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert embedded is not None
    shown = json.loads(embedded[1])["workloads"]
    assert overview.strip() in page
    assert len(charts) == len(shown) == 1
    for chart, first in zip(charts, shown, strict=True):
        html = chart.pop("html")
        assert json.loads(json.dumps(chart)) == first
        assert set(html) == {
            f"w1-{part}"
            for part in (
                "lede",
                "marks",
                "times",
                "criteria-part",
                "errors-part",
                "tables",
                "counters-part",
            )
        }
        for place, text in html.items():
            assert f'id="{place}"' in page
            assert text.strip() in page


def test_charts_are_drawn_when_the_run_has_written_more(
    going_on: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_documents, "SHARE", 1e9)
    drawn: list[int] = []
    parts = live_documents.report_views.parts
    monkeypatch.setattr(
        live_documents.report_views, "parts", lambda facts: drawn.append(1) or parts(facts)
    )
    document = RunDocument(going_on)

    first = document()
    second = document()
    os.utime(going_on.path / TIMELINE, ns=(1, 1))
    document()

    assert len(drawn) == 2
    assert first == second
    assert first["begun"]
    assert not first["over"]
    assert "host-a:7" in "\n".join(first["now"])


def test_charts_that_are_expensive_are_drawn_less_often(
    going_on: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_documents, "SHARE", 1e-9)
    document = RunDocument(going_on)
    first = document()
    os.utime(going_on.path / TIMELINE, ns=(1, 1))
    second = document()

    os.utime(going_on.path / TIMELINE, ns=(2, 2))
    going_on.write("status.json", dataclasses.asdict(snapshot(elapsed_s=9.0)))
    third = document()

    # what it is doing now is cheap; the first drawing imports, and counts for nothing
    assert third["line"] == "running, 9 s"
    assert first["charts"] is not second["charts"]
    assert second["charts"] is third["charts"]


def test_charts_of_a_workload_that_has_begun_are_drawn_at_once(
    going_on: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_documents, "SHARE", 1e-9)
    document = RunDocument(going_on)
    first = document()

    os.utime(going_on.path / TIMELINE, ns=(1, 1))
    going_on.write("status.json", dataclasses.asdict(snapshot(workload=1)))
    second = document()

    assert second["charts"] is not first["charts"]


def test_a_report_that_cannot_be_drawn_leaves_the_rest(
    going_on: RunDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def torn(facts: object) -> Any:
        raise ValueError("torn")

    monkeypatch.setattr(live_documents.report_views, "parts", torn)
    monkeypatch.setattr(live_documents, "SHARE", 1e9)
    document = RunDocument(going_on)

    for number in range(3):
        os.utime(going_on.path / TIMELINE, ns=(number + 1, number + 1))
        found = document()

    assert found["line"] == "running, 3 s"
    assert "charts" not in found
    assert caplog.text.count("Traceback") == 1


def test_from_one_second_to_the_next_little_is_sent(tmp_path: Path) -> None:
    earlier = made_run(tmp_path / "a", 20_000)
    later = made_run(tmp_path / "b", 20_200)
    found = []
    for run in (earlier, later):
        resumable.begin_again(run)
        run.write("status.json", dataclasses.asdict(snapshot()))
        with held(run):
            found.append(json.loads(json.dumps(RunDocument(run)())))

    how = change(*found)

    assert apply_change(found[0], how) == found[1]
    assert len(json.dumps(how)) < len(json.dumps(found[1]))


@pytest.mark.parametrize(
    ("age_s", "line"), [(0.0, "running, 3 s"), (60.0, "running, 3 s, no news for 60 s")]
)
def test_a_run_that_writes_nothing_is_told(age_s: float, line: str) -> None:
    status = {**dataclasses.asdict(snapshot()), "at": time.time() - age_s}

    assert state_line(status, running=True, summary=None) == line


def test_a_run_before_its_directory_is_awaited(tmp_path: Path) -> None:
    found = RunDocument(RunDirectory(tmp_path / "runs" / "later"))()

    assert found.pop("line") == "preparing"
    assert found.pop("log_line") == "nothing yet"
    empty = {"now": [""], "failures": [""], "log": [""]}
    assert found == {"begun": False, **empty, "over": False}


@pytest.mark.parametrize(("age_s", "over"), [(0, False), (60, True)])
def test_a_run_is_not_over_before_its_new_directory_is_locked(
    tmp_path: Path, age_s: float, over: bool
) -> None:
    directory = RunDirectory.of(str(tmp_path), "r")
    directory.path.mkdir(parents=True)
    at = time.time() - age_s
    os.utime(directory.path, (at, at))

    assert RunDocument(directory)()["over"] is over
    assert directory.is_awaited is not over


def test_a_finished_run_is_shown_as_its_report(tmp_path: Path) -> None:
    run = made_run(tmp_path, 500)
    with serving(tmp_path) as server:
        found = httpx.get(f"{server.url}runs/{run.path.name}", headers=BEARER, timeout=60)

    assert found.status_code == 200
    assert 'id="overview"' in found.text
    assert 'id="live"' not in found.text
    assert "http-equiv" not in found.text
    assert "'sha256-" in found.headers["content-security-policy"]


def test_two_runs_are_compared_or_it_is_said_why_not(tmp_path: Path) -> None:
    first = made_run(tmp_path, 500)
    copy = first.path.with_name(first.path.name + "x")
    copy.mkdir()
    for file in first.path.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    names = (first.path.name, copy.name)
    with serving(tmp_path) as server, httpx.Client(headers=BEARER, timeout=60) as client:
        one = client.get(f"{server.url}compare?run={names[0]}")
        same = client.get(f"{server.url}compare?run={names[0]}&run={names[0]}")
        both = client.get(f"{server.url}compare?run={names[0]}&run={names[1]}")

    assert (one.status_code, same.status_code) == (400, 400)
    assert "Tick two" in one.text
    assert both.status_code in (200, 409), both.text
    assert "Traceback" not in both.text
