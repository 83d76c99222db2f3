"""Whoever reads the output of a run may stop reading: the run goes on and ends with its code."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from helpers import forked_commands
from helpers.commands import environment
from helpers.runs import Site, site
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

ONE = ("run", "--scenario", "Dummy.dummy", "--times", "1")


@contextlib.contextmanager
def unread() -> Iterator[IO[bytes]]:
    """A pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as file:
        yield file


def full() -> IO[bytes]:
    return Path("/dev/full").open("wb", buffering=0)


#: Makes a file of no use.
Useless = Callable[[], contextlib.AbstractContextManager[IO[bytes]]]


def coord(
    here: Site, *arguments: str, out: Useless | None = None, err: Useless | None = None
) -> tuple[int, str]:
    """The exit code of a command that writes to useless files, and what it says on stderr."""
    with contextlib.ExitStack() as stack:
        said = stack.enter_context(tempfile.TemporaryFile())
        code = forked_commands.run_into(
            (
                stack.enter_context((out or tempfile.TemporaryFile)()),
                stack.enter_context(err()) if err else said,
            ),
            arguments,
            folder=here.home,
            env=environment(here.home),
            within_s=PATIENCE_S,
        )
        said.seek(0)
        return code, said.read().decode()


@pytest.fixture(scope="module")
def after_a_run() -> Iterator[Site]:
    """A home with a finished run, whose output nobody has read."""
    with site() as found:
        # long enough to say how far it is
        code, _ = coord(found, *ONE, "--arg", "sleep=1.5", out=unread, err=unread)
        assert code == 0
        yield found


def test_a_run_whose_output_nobody_reads_ends_with_its_code(after_a_run: Site) -> None:
    (again,) = after_a_run.coord("results", "last", "--json").result["workloads"]

    assert again["accounting"]["ok"] == 1


def test_a_run_whose_report_finds_no_room_is_there(after_a_run: Site) -> None:
    before = after_a_run.coord("results", "last", "--json").result["run_id"]

    code, said = coord(after_a_run, *ONE, "--json", out=full)

    assert code == 5
    assert "cannot write to standard output" in said
    again = after_a_run.coord("results", "last", "--json")
    assert again.result["run_id"] != before
    assert again.sums["ok"] == 1


#: What most commands print, by the ways in which they do it.
PRINTING = [
    ["--help"],
    ["--version"],
    ["results", "--help"],
    ["results", "last"],
    ["results", "last", "--json"],
    ["results", "last", "--csv"],
    ["runs", "list"],
    ["status", "last"],
    ["sla", "last"],
    ["trends"],
    ["plugin", "list"],
    ["validate", "task.json", "--json"],
    ["completion", "bash"],
    ["deployment", "list"],
    ["doctor"],
    ["init", "new.yaml"],
    ["config", "show"],
]

#: One of each way: click's help, rich's tables, JSON, plain text of some length, JSON, nothing.
WAYS = [PRINTING[at] for at in (0, 3, 4, 5, 11, 15)]
#: `init` prints nothing on stdout.
SILENT = "init new.yaml"


def printed(
    here: Site, commands: list[list[str]], out: Useless | None = None, err: Useless | None = None
) -> dict[str, tuple[int, str]]:
    """Exit code and stderr of commands; none of them ends with a traceback."""
    (here.home / "new.yaml").unlink(missing_ok=True)
    here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"iterations": 1}}})
    found = {" ".join(one): coord(here, *one, out=out, err=err) for one in commands}
    for name, (_, said) in found.items():
        assert "Traceback" not in said and "Exception ignored" not in said, (name, said)
    return found


@pytest.mark.parametrize("useless", [{"out": unread}, {"err": full}, {"err": unread}])
def test_commands_whose_output_nobody_reads_have_done_their_work(
    after_a_run: Site, useless: dict[str, Useless]
) -> None:
    found = printed(after_a_run, WAYS, **useless)

    assert {code for code, _ in found.values()} == {0}, found


def test_commands_whose_output_finds_no_room_say_so(after_a_run: Site) -> None:
    found = printed(after_a_run, PRINTING, out=full)

    silent, _ = found.pop(SILENT)
    assert silent == 0
    said = "Error: cannot write to standard output: No space left on device"
    assert not {name: one for name, one in found.items() if one[0] != 5 or said not in one[1]}


@pytest.mark.parametrize(
    ("how", "command"),
    [
        ('"$@" >&-', ["results", "last"]),
        ('"$@" 2>&- >/dev/null', ["results", "last", "--csv"]),
        ('"$@" <&- >&- 2>&-', ["init", "closed.yaml"]),
    ],
)
def test_commands_that_a_shell_starts_without_streams_end_well(
    after_a_run: Site, how: str, command: list[str]
) -> None:
    done = subprocess.run(
        ["bash", "-c", how, "bash", "osbench-coord", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(after_a_run.home),
        cwd=after_a_run.home,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
