"""Runs of older releases: their summaries are shown by this one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from helpers.older_summaries import NAMES, older_summary
from helpers.shown_page import page_of, shown_page
from osbench.coordinator.report.model.model import FINISHED, Report
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.report.text import render
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import is_summary

Golden = Callable[[str, str], None]


def facts_of(data: Path, name: str) -> RunFacts:
    """A finished run of an older release, without timeline."""
    summary = older_summary(name)
    path = data / summary["run_id"]
    path.mkdir()
    return RunFacts(
        directory=RunDirectory(path),
        manifest={"run_id": summary["run_id"], "task": summary["task"], "workloads": [{}]},
        summary=summary,
        timeline=None,
        state=FINISHED,
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_an_older_run_looks_like_its_golden_file(golden: Golden, name: str) -> None:
    file = io.StringIO()

    render(Report.from_json(older_summary(name)), Console(file=file, width=100), details=True)

    assert is_summary(older_summary(name))
    golden(
        f"older/{name}.txt", "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_an_older_run_looks_like_its_golden_file(
    golden: Golden, name: str, tmp_path: Path
) -> None:
    page = shown_page(page_of(facts_of(tmp_path, name)))

    golden(f"older/{name}.html", page)
