"""A service is brought to a population by a command, whose failures are explained."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.plugin import entry_points
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.edges.growth import population
from osbench.edges.growth.population import Populating, by_command, by_seed
from osbench.edges.growth.population_runs import PopulationRuns


def never() -> bool:
    """No interrupt."""
    return False


def is_running(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def test_a_shell_command_has_the_population_in_its_environment(tmp_path: Path) -> None:
    populating = by_command(f"echo $POPULATION >> {tmp_path}/said", 60)

    assert populating.populate(100, never)
    assert populating.populate(2000, never)

    assert (tmp_path / "said").read_text().split() == ["100", "2000"]


def test_a_command_that_fails_is_an_error_with_its_last_lines() -> None:
    with pytest.raises(OsbenchError) as caught:
        by_command("echo no space; exit 7", 60).populate(5000, never)

    assert "--populate for a population of 5,000 ended with exit code 7" in str(caught.value)
    assert "no space" in str(caught.value)


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    command = f"echo begun; echo $$ > {tmp_path}/pid; exec sleep 600"

    with pytest.raises(OsbenchError, match=r"did not end within 0\.5 s; raise --populate"):
        by_command(command, 0.5).populate(10, never)

    assert not is_running(int((tmp_path / "pid").read_text()))


def test_an_interrupt_ends_the_command_and_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def begun() -> bool:
        return pids.exists() and len(pids.read_text().split()) == 2

    command = f"sleep 600 & echo $! $$ > {pids}; wait"

    assert by_command(command, 60).populate(10, begun) is False
    assert not [pid for pid in pids.read_text().split() if is_running(int(pid))]


def test_a_long_command_is_told_by_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "_TELL_S", 0.0)
    told: list[str] = []

    looks: list[int] = []

    def look() -> bool:
        looks.append(len(told))
        if looks.count(len(told)) == 3:
            (tmp_path / f"go-{len(told)}").touch()
        return False

    wait = f"until [ -e {tmp_path}/go-%s ]; do sleep 0.01; done"
    command = f"{wait % 0}; printf '  1 of 2\\n\\n'; {wait % 1}; echo 2 of 2; {wait % 2}"

    assert by_command(command, 60).populate(10, look, told.append)
    assert told == ["1 of 2", "2 of 2"]


def test_the_output_of_the_command_is_told_with_the_population() -> None:
    said: list[str] = []

    class Filling:
        option = "--populate"

        def populate(self, _: int, __: Callable[[], bool], tell: Callable[[str], None]) -> bool:
            tell("7 of 9")
            return False

    progress = Progress(quiet=True)
    progress.listener = said.append
    anything: Any = None
    filling: Any = Filling()

    PopulationRuns(anything, anything, filling, progress).run((3000,), 1)

    assert said == ["population 3,000: --populate", "population 3,000: 7 of 9"]


def test_a_command_that_got_a_signal_says_which() -> None:
    with pytest.raises(OsbenchError, match=f"got signal {signal.SIGKILL:d}; correct"):
        by_command("kill -9 $$", 60).populate(10, never)


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(UsageError, match="--populate is empty"):
        by_command("  ", 60)


@pytest.fixture
def with_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `seed` is installed."""
    monkeypatch.setattr(entry_points, "names", lambda kind: frozenset({"seed"}))


def test_seed_that_is_not_installed_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "names", lambda kind: frozenset({"compare"}))

    with pytest.raises(UsageError, match=r"osbench-coord seed.*use --populate COMMAND"):
        by_seed(tmp_path / "seed.yaml", "lab", (), 60)


@pytest.mark.usefixtures("with_seed")
def test_seed_needs_its_file_and_a_deployment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no seed file .*seed\.yaml"):
        by_seed(tmp_path / "seed.yaml", "lab", (), 60)

    (tmp_path / "seed.yaml").touch()
    with pytest.raises(UsageError, match="--seed needs a deployment"):
        by_seed(tmp_path / "seed.yaml", None, (), 60)


@pytest.mark.usefixtures("with_seed")
def test_seed_gets_file_deployment_configuration_and_population(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seed.yaml").touch()
    asked = by_seed(tmp_path / "seed.yaml", "lab", ("own.conf",), 60)
    script = f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'said')!r}, 'w').write("
    script += "' '.join(sys.argv[1:]))\n"
    fake = tmp_path / "fake"
    fake.write_text(script)
    fake.chmod(0o755)
    words = asked.command[asked.command.index("seed") :]
    faked = Populating(
        option=asked.option,
        command=(str(fake), *words),
        population_option=asked.population_option,
        within_s=60,
    )

    assert asked.command[0] == sys.executable
    assert faked.populate(300, never)
    assert (tmp_path / "said").read_text() == (
        f"seed --config-file own.conf {tmp_path}/seed.yaml --deployment lab --json --population 300"
    )


def test_nothing_is_left_in_the_folder_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    look: Callable[[], bool] = never

    assert by_command("true", 60).populate(1, look)

    assert os.listdir(tmp_path) == []  # noqa: PTH208 - names only
