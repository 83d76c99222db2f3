"""Where local mode makes its private folder."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from osbench.coordinator.load.local.lifeline import Lifeline
from osbench.coordinator.load.local.local_start import make_folder


@pytest.fixture
def lifeline() -> Iterator[Lifeline]:
    line = Lifeline()
    yield line
    line.close()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory as short as those that XDG_RUNTIME_DIR names, and that variable set to it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="osb-") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name)


def test_the_folder_is_for_this_user_only(lifeline: Lifeline, runtime: Path) -> None:
    folder = make_folder(lifeline)

    assert folder.parent == runtime
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_socket_fits_in_wherever_the_folder_is(lifeline: Lifeline, runtime: Path) -> None:
    long = runtime / ("long" * 20)
    long.mkdir()

    folder = folder_under(lifeline, long)

    assert folder.parent != long
    assert len(f"{folder}/redis.sock") < 108


@pytest.mark.parametrize("name", ["with blank", "per%cent", "do$$ar", "com,ma", "hash#"])
def test_a_name_that_a_url_or_a_file_would_misread_is_passed_over(
    lifeline: Lifeline, runtime: Path, name: str
) -> None:
    odd = runtime / name
    odd.mkdir()

    folder = folder_under(lifeline, odd)

    assert folder.parent != odd


def test_a_directory_whose_entries_others_can_replace_is_passed_over(
    lifeline: Lifeline, runtime: Path
) -> None:
    runtime.chmod(0o777)

    folder = folder_under(lifeline, runtime)

    assert folder.parent != runtime


def test_a_runtime_directory_that_is_gone_is_passed_over(lifeline: Lifeline, runtime: Path) -> None:
    gone = runtime / "gone"

    folder = folder_under(lifeline, gone)

    assert folder.is_dir()


def test_the_folder_goes_when_the_lifeline_closes(lifeline: Lifeline, runtime: Path) -> None:
    folder = make_folder(lifeline)
    (folder / "file").touch()

    lifeline.close()

    assert not folder.exists()


def folder_under(lifeline: Lifeline, runtime: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        return make_folder(lifeline)
