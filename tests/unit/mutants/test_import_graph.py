"""Tests near a module: by name, folder, and the length of the chain of imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.import_graph import ImportGraph, module_name

FILES = {
    "common/ids.py": "",
    "common/names.py": "from osbench.common import ids",
    "worker/__init__.py": "",
    "worker/engine/__init__.py": "import osbench.common.names as names",
    "worker/engine/loop.py": "def f():\n    from osbench.common.ids import new",
    "worker/plugged.py": "",
    "src/osbench/plugin/__init__.py": "from osbench.common.names import name",
    "tests/helpers/made.py": "import osbench.worker.engine.loop",
    "tests/unit/common/test_ids.py": "import osbench.common.ids",
    "tests/unit/common/test_names.py": "from osbench.common.names import name",
    "tests/unit/worker/test_other.py": "from osbench.common.ids import new",
    "tests/property/test_loop.py": "from helpers.made import loop",
    "tests/functional/test_all.py": "import osbench.common.ids",
    "tests/unit/docs/test_types.py": (
        "if TYPE_CHECKING:\n    from osbench.common import ids\nimport osbench.plugin"
    ),
}


@pytest.fixture
def graph(tmp_path: Path) -> ImportGraph:
    """The graph of a small product."""
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return ImportGraph(tmp_path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("common/ids.py", "osbench.common.ids"),
        ("worker/engine/__init__.py", "osbench.worker.engine"),
        ("src/osbench/plugin/__init__.py", "osbench.plugin"),
        ("tests/helpers/made.py", "helpers.made"),
        ("tests/lab/services/a.py", "services.a"),
    ],
)
def test_modules_have_the_names_by_which_they_are_imported(path: str, name: str) -> None:
    assert module_name(path) == name


def test_the_nearest_tests_come_first(graph: ImportGraph) -> None:
    near = graph.near_tests("common/ids.py")

    assert near == [
        "tests/unit/common/test_ids.py",
        "tests/unit/worker/test_other.py",
        "tests/unit/common/test_names.py",
        "tests/property/test_loop.py",
        "tests/unit/docs/test_types.py",
    ]
    assert graph.near_tests("common/ids.py", most=2) == near[:2]


def test_an_import_of_a_module_imports_its_packages(graph: ImportGraph) -> None:
    assert "tests/property/test_loop.py" in graph.near_tests("worker/engine/__init__.py")


def test_a_plugin_that_nothing_imports_has_the_tests_of_its_folder(graph: ImportGraph) -> None:
    assert graph.near_tests("worker/plugged.py") == ["tests/unit/worker/test_other.py"]
