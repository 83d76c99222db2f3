"""The commands of the guide to comparisons do what it says."""

from __future__ import annotations

import json
import re

import pytest

from helpers.machine import Machine
from helpers.readme import blocks, files
from servers import folder

pytestmark = pytest.mark.functional

GUIDE = "docs/comparing.md"


def test_the_guide_from_repeats_to_trends() -> None:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        machine = Machine(home, folder=desk)
        for name, text in files(GUIDE).items():
            (desk / name).write_text(machine.text(text), encoding="utf-8")

        compared, duelled, trends, by_load = (
            machine.run(step) for step in blocks("comparing", GUIDE)
        )

        # which percentile is named first depends on the machine's other work
        assert re.search(r"Worse: p\d+ of Dummy\.dummy takes", compared), compared
        assert "exit code 1" in compared
        assert "Basis: 3 pairs of runs made in turn" in duelled
        assert "too few to look for changes" in trends
        document = json.loads((desk / "trends.json").read_text("utf-8"))
        assert [len(one["runs"]) for one in document["trends"]] == [3]
        assert "Dummy.dummy, by load" in by_load
        assert "A fit takes 6 steps of different concurrency or more; there are 3" in by_load
        for page in ("comparison.html", "duel.html", "trends.html", "steps.html"):
            assert (desk / page).read_text("utf-8").startswith("<!doctype html>")


def test_the_guide_to_nightly_runs() -> None:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (nightly,) = blocks("nightly", GUIDE)

        said = Machine(home, folder=desk).run(nightly)

        assert "1 task, exit code 0" in said
        assert "1 of at least 8 runs: too few to check the last one." in said
