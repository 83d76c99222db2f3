"""The house stays small: what must be read to follow a run, and what the core holds, only sinks."""

from __future__ import annotations

import runpy
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from helpers.readme import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "house.py"
#: Lines of the core, lines that follow `run --url`, modules that run/lifecycle imports, at most.
CORE, FOLLOWED, LIFECYCLE = 86_091, 77_729, 20


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_no_count_grows(script: dict[str, Any]) -> None:
    house = script["House"]()

    assert house.by_part()["core"] <= CORE
    assert house.total(house.followed()) <= FOLLOWED
    assert len(house.imports[house.module("run.lifecycle")]) <= LIFECYCLE


def test_no_circle_of_modules_import_each_other(script: dict[str, Any]) -> None:
    TopologicalSorter(script["House"]().imports).prepare()


def test_imports_inside_functions_and_of_packages_are_followed(
    script: dict[str, Any], tmp_path: Path
) -> None:
    texts = {
        "common/__init__.py": "",
        "common/a.py": "def f():\n    from osbench.common.b import c\n",
        "common/b.py": "import osbench.edges.one.d\n",
        "common/alone.py": "",
        "edges/__init__.py": "",
        "edges/one/__init__.py": "\n\n",
        "edges/one/d.py": "from osbench.common import a\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    house = script["House"](tmp_path)

    followed = house.closure(["osbench.common.a"])
    assert followed == {
        "osbench.common",
        "osbench.common.a",
        "osbench.common.b",
        "osbench.edges",
        "osbench.edges.one",
        "osbench.edges.one.d",
    }
    assert house.by_part() == {"core": 3, "edges/one": 3}
