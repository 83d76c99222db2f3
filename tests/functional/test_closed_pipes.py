"""Whoever reads the output of a run may stop reading: the run goes on and ends with its code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from helpers.commands import environment
from helpers.runs import Site, site
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

RUN = ("run", "--scenario", "Dummy.dummy", "--arg", "sleep=3", "--times", "1")


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def unread() -> int:
    """A pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_run_whose_output_nobody_reads_ends_with_its_code(here: Site, form: str) -> None:
    writing = unread()

    done = subprocess.run(
        ["osbench-coord", *RUN, *([form] if form else [])],
        stdout=writing,
        stderr=writing if not form else subprocess.PIPE,
        env=environment(here.home),
        cwd=here.home,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writing)

    assert done.returncode == 0, done.stderr
    assert not done.stderr or b"pipe" not in done.stderr
    (again,) = here.coord("results", "last", "--json").result["workloads"]
    assert again["accounting"]["ok"] == 1


def test_results_that_nobody_reads_to_the_end_are_no_failure(here: Site) -> None:
    assert here.run("--scenario", "Dummy.dummy", "--times", "1").code == 0
    writing = unread()

    codes = [
        subprocess.run(
            ["osbench-coord", "results", "last", *form],
            stdout=writing,
            env=environment(here.home),
            cwd=here.home,
            timeout=PATIENCE_S,
            check=False,
        ).returncode
        for form in ((), ("--json",), ("--csv",))
    ]
    os.close(writing)

    assert codes == [0, 0, 0]
