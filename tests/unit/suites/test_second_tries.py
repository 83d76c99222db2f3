"""A test that fails by chance is run once more and named; others fail the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.__main__ import SECOND_TRIES, report, run_parts
from suites.parts import LEFT_OUT, REPOSITORY, WHOLE, Part, parts

PLANTED = """
from pathlib import Path

TRIED = Path(__file__).with_name("tried")


def test_passes():
    pass


def test_fails_every_other_time():
    tried = TRIED.exists()
    TRIED.unlink() if tried else TRIED.touch()
    assert tried
"""
ALWAYS = "\n\ndef test_always_fails_{}():\n    assert False\n"


def played(folder: Path, text: str, options: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    (folder / "test_planted.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # plug-ins of pytest that nothing here needs take most of its start
    bare = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    selection = ("test_planted.py",)
    part = Part(title="planted", selection=selection, options=options, variables=bare)
    return run_parts([part], (), folder)


def test_a_test_that_fails_by_chance_passes_and_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, flaky = played(tmp_path, PLANTED)
    report("test", flaky, tmp_path / "build" / "flaky.txt")

    name = "test_planted.py::test_fails_every_other_time"
    assert (code, flaky) == (0, [name])
    assert capfd.readouterr().out.splitlines()[-1] == f"flaky: {name}"
    assert (tmp_path / "build" / "flaky.txt").read_text() == f"{name}\n"


def test_a_test_that_fails_twice_fails_the_suite(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert played(tmp_path, PLANTED + ALWAYS.format(1)) == (1, [])
    assert "2 failed and run once more, alone" in capfd.readouterr().out


def test_many_failures_are_not_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    many = "".join(ALWAYS.format(number) for number in range(SECOND_TRIES))

    assert played(tmp_path, PLANTED + many) == (1, [])
    assert "once more" not in capfd.readouterr().out


def test_a_process_that_hangs_in_c_is_ended_with_its_stacks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hangs = """
import ctypes


def test_waits_for_ever():
    lock, c = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
    c.pthread_mutex_lock(lock)
    c.pthread_mutex_lock(lock)
"""
    soon = ("-p", "xdist", "--numprocesses", "1", "-o", "faulthandler_timeout=1")

    assert played(tmp_path, hangs, soon) == (1, [])
    assert "in test_waits_for_ever" in capfd.readouterr().err


def test_a_process_that_ended_fails_the_suite_with_the_tests_left_to_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ends = (
        PLANTED
        + """

def test_ends_its_process_once():
    if not TRIED.with_name("ended").exists():
        TRIED.with_name("ended").touch()
        __import__("os")._exit(1)
"""
    )
    one = ("-p", "xdist", "--numprocesses", "1", "--max-worker-restart=0")

    assert played(tmp_path, ends, one) == (1, [])
    assert "once more" not in capfd.readouterr().out


def test_tests_of_a_fixture_that_fails_by_chance_count_as_one(tmp_path: Path) -> None:
    fixture = """
import pytest

@pytest.fixture(scope="module")
def found():
    TRIED.touch() if not TRIED.exists() else None
    assert TRIED.stat().st_size
    yield

@pytest.fixture(scope="module", autouse=True)
def tries():
    yield
    TRIED.write_text("once")
"""
    using = "".join(
        f"\n\ndef test_uses_it_{number}(found):\n    pass\n" for number in range(SECOND_TRIES + 3)
    )
    begun = PLANTED.partition("\n\ndef test_passes")[0]

    code, flaky = played(tmp_path, begun + fixture + using)

    assert (code, len(flaky)) == (0, SECOND_TRIES + 3)


@pytest.mark.parametrize("text", ["import nothing_of_this_name\n", "# no test\n"])
def test_a_suite_that_cannot_run_fails(tmp_path: Path, text: str) -> None:
    assert played(tmp_path, text) == (1, [])


def test_every_folder_of_tests_is_in_the_suites() -> None:
    tests = REPOSITORY / "tests"
    folders = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}

    for suites in (("all",), ("test", "rest")):
        selected = [one for name in suites for part in parts(name) for one in part.selection]
        assert {Path(one).name for one in selected if one.startswith("tests/")} >= folders
    assert set(WHOLE) <= folders
    assert set(LEFT_OUT) == {"test", "rest", "all", "python"}
