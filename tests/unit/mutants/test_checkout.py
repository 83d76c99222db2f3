"""A checkout plants mutants and takes them back; it says how its tests ended."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mutants.changes import changes_of
from mutants.checkout import Checkout, Outcome
from mutants.layers import Suite
from mutants.mutant import Mutant, mutant_of

SOURCE = b"x = a < b\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of a module, whose environment is the one of this test."""
    root = tmp_path / "tree"
    (root / ".venv/bin").mkdir(parents=True)
    python = root / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', "utf-8")
    python.chmod(0o755)
    (root / "module.py").write_bytes(SOURCE)
    return root


def _mutant() -> Mutant:
    (change,) = changes_of(SOURCE)
    return mutant_of("module.py", SOURCE, change, seed=1, number=1)


def _run(tree: Path, test: str, limit_s: float = 600.0) -> Outcome:
    (tree / "test_it.py").write_text(test, "utf-8")
    suite = Suite(paths=("test_it.py",), variables={"PLACE": "{root}/here"})
    return Checkout(tree).run(suite, suite.paths, limit_s=limit_s, is_small=True)


def test_a_mutant_is_taken_back_and_no_state_has_the_time_of_another(tree: Path) -> None:
    module = tree / "module.py"
    checkout = Checkout(tree)
    times = [module.stat().st_mtime]

    for _ in range(2):
        with checkout.planted([_mutant()]):
            assert module.read_bytes() == SOURCE.replace(b"<", b"<=")
            times.append(module.stat().st_mtime)
        assert module.read_bytes() == SOURCE
        times.append(module.stat().st_mtime)

    assert len(set(map(int, times))) == len(times)


def test_several_mutants_of_a_module_are_refused_and_taken_back(tree: Path) -> None:
    with pytest.raises(AssertionError), Checkout(tree).planted([_mutant(), _mutant()]):
        pass

    assert (tree / "module.py").read_bytes() == SOURCE


def test_a_mutant_has_no_place_in_a_module_that_has_changed_or_is_gone(tree: Path) -> None:
    checkout = Checkout(tree)

    assert checkout.has_place(_mutant())
    (tree / "module.py").write_bytes(b"x = b > a\n")
    assert not checkout.has_place(_mutant())
    (tree / "module.py").unlink()
    assert not checkout.has_place(_mutant())


@pytest.mark.dear
def test_tests_get_the_variables_of_their_suite_and_none_of_make(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-j")
    wanted = {"PLACE": f"{tree}/here", "MAKEFLAGS": None}
    test = f"import os\ndef test(): assert {wanted} == {{k: os.environ.get(k) for k in {wanted}}}"

    outcome = _run(tree, test)

    assert outcome == Outcome(count=1)
    assert outcome.is_passed


@pytest.mark.dear
def test_a_file_with_an_error_and_a_hang_are_culprits(tree: Path) -> None:
    wrong = _run(tree, "def")
    hanging = _run(tree, "import time\ntime.sleep(600)", limit_s=0.0)

    assert wrong.culprit == "test_it.py"
    assert wrong.broken
    assert hanging.culprit == "hangs: not finished after 0 s"
