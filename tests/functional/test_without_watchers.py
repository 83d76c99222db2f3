"""Without its watchers osbench runs tasks, and writes the page of a run that had them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from helpers.runs import Finished, Site, site

pytestmark = pytest.mark.functional

# as if the packages with these entry points were not installed
PROGRAM = """
import sys
from osbench.common.plugin import entry_points
installed = entry_points.names
entry_points.names = lambda group: (
    [] if group in ("watcher", "page_part") else installed(group)
)
from osbench.coordinator.front.cli import main
main(sys.argv[1:], prog_name="osbench-coord")
"""
FEW = {
    "scenario": {"Dummy.dummy": {"sleep": 0}},
    "runner": {"constant": {"times": 3, "concurrency": 1}},
}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def bare(here: Site, *arguments: str) -> Finished:
    """Run osbench-coord without watchers to its end."""
    return here.start(sys.executable, "-c", PROGRAM, *arguments).finish()


def test_a_run_needs_no_watcher(here: Site) -> None:
    done = bare(here, "run", "--json", here.task(FEW))

    assert done.code == 0, done.err
    assert done.sums["ok"] == 3


def test_the_page_of_a_watched_run_is_written(here: Site) -> None:
    watched = here.run(here.task(FEW))

    done = bare(here, "report", watched.result["run_id"], "--html", str(here.home / "page.html"))

    assert done.code == 0, done.err
    assert "Dummy.dummy" in (here.home / "page.html").read_text("utf-8")


def test_an_option_of_a_missing_watcher_is_refused(here: Site) -> None:
    done = bare(here, "run", "--otlp", "127.0.0.1:0", here.task(FEW))

    assert done.code == 2
    assert "otlp_listen needs the watcher traces, which is not installed" in done.err
