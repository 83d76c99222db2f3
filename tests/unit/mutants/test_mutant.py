"""Mutants are drawn by a seed, and find their place again in a module that has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.changes import changes_of
from mutants.mutant import Mutant, drawn, mutant_of, product_modules

SOURCE = b"def f(a):\n    if a < 1:\n        return 2\n    return a\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A product of two modules, one of them empty, with a link to its folder."""
    for folder in ("common", "coordinator", "worker", "edges", "src/osbench"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "common/a.py").write_bytes(SOURCE)
    (tmp_path / "worker/b.py").write_bytes(b"")
    (tmp_path / "src/osbench/common").symlink_to("../../common")
    return tmp_path


def _mutant(source: bytes, kind: str) -> Mutant:
    (change,) = [one for one in changes_of(source) if one.kind == kind]
    return mutant_of("common/a.py", source, change, seed=1, number=1)


def test_a_linked_module_counts_once(root: Path) -> None:
    assert product_modules(root) == ["common/a.py", "worker/b.py"]


def test_a_seed_draws_the_same_mutants_again_and_none_twice(root: Path) -> None:
    mutants = drawn(root, 7, 20)

    assert mutants == drawn(root, 7, 20)
    # comparison, branch, and two numbers, each up and down
    assert len({mutant.planted(SOURCE) for mutant in mutants}) == len(mutants) == 6
    assert [mutant.number for mutant in mutants] == [1, 2, 3, 4, 5, 6]
    assert drawn(root, 8, 3) != mutants[:3]


def test_a_mutant_differs_from_its_module_in_the_change() -> None:
    mutant = _mutant(SOURCE, "comparison")

    assert mutant.line == 2
    assert mutant.planted(SOURCE) == SOURCE.replace(b"<", b"<=")
    assert Mutant(**mutant.to_dict()) == mutant


def test_a_mutant_finds_its_lines_in_a_later_state_of_the_module() -> None:
    mutant = _mutant(SOURCE, "comparison")
    copy = SOURCE.replace(b"f(a)", b"g(a)")
    later = b"# more\n\n" + SOURCE + copy

    assert mutant.planted(later) == b"# more\n\n" + SOURCE.replace(b"<", b"<=") + copy
    assert mutant.planted(copy + later) == copy.replace(b"<", b"<=") + later
    assert mutant.planted(SOURCE.replace(b"a < 1", b"a < 2")) is None


def test_a_module_without_changes_gives_no_mutants(root: Path) -> None:
    (root / "common/a.py").write_bytes(b"from x import y\n")

    assert drawn(root, 1, 5) == []
