"""Scripts that no test runs, such as long forms and samples, import what there is."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from helpers.readme import REPOSITORY

FOLDERS = ("samples", "deploy", "tests/bench", "tests/chaos", "tests/soak", "tests/truth")


def scripts() -> list[str]:
    return [
        path.relative_to(REPOSITORY).as_posix()
        for folder in FOLDERS
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    ]


def imported(script: Path) -> Iterator[tuple[str, str]]:
    """Modules of osbench, and the names that are taken of them ("" for the module)."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, one.name) for one in node.names)


def test_what_a_script_imports_of_osbench_exists() -> None:
    found = {
        (module, name): script
        for script in scripts()
        for module, name in imported(REPOSITORY / script)
        if module.startswith("osbench")
    }

    for (module, name), script in found.items():
        known = hasattr(importlib.import_module(module), name) if name else True
        there = known or importlib.util.find_spec(f"{module}.{name}")
        assert there, f"{script}: {module} has no {name}"


def test_there_are_scripts_to_look_at() -> None:
    found = scripts()

    assert "samples/screenshots.py" in found
    assert len(found) > 20
