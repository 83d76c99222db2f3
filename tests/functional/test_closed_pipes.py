"""Whoever reads the output of a run may stop reading: the run goes on and ends with its code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from helpers.commands import environment
from helpers.runs import Site, site
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

RUN = ("run", "--scenario", "Dummy.dummy", "--arg", "sleep=3", "--times", "1")


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def after_a_run() -> Iterator[Site]:
    """A home with a finished run."""
    with site() as found:
        assert found.run("--scenario", "Dummy.dummy", "--times", "1").code == 0
        yield found


def unread() -> int:
    """A pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_run_whose_output_nobody_reads_ends_with_its_code(here: Site, form: str) -> None:
    writing = unread()

    done = subprocess.run(
        ["osbench-coord", *RUN, *([form] if form else [])],
        stdout=writing,
        stderr=writing if not form else subprocess.PIPE,
        env=environment(here.home),
        cwd=here.home,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writing)

    assert done.returncode == 0, done.stderr
    assert not done.stderr or b"pipe" not in done.stderr
    (again,) = here.coord("results", "last", "--json").result["workloads"]
    assert again["accounting"]["ok"] == 1


def test_results_that_nobody_reads_to_the_end_are_no_failure(after_a_run: Site) -> None:
    here = after_a_run
    writing = unread()

    codes = [
        subprocess.run(
            ["osbench-coord", "results", "last", *form],
            stdout=writing,
            env=environment(here.home),
            cwd=here.home,
            timeout=PATIENCE_S,
            check=False,
        ).returncode
        for form in ((), ("--json",), ("--csv",))
    ]
    os.close(writing)

    assert codes == [0, 0, 0]


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

#: One of each way: click's help, rich's tables, plain text of some length, JSON, nothing.
WAYS = [PRINTING[0], PRINTING[3], PRINTING[5], PRINTING[11], PRINTING[15]]

#: How a shell starts a command -> the codes with which it ends, and the commands.
STREAMS = {
    '"$@" >&-': ([0], WAYS),
    '"$@" | head -c 0; exit "${PIPESTATUS[0]}"': ([0], WAYS),
    # `init` prints nothing on stdout
    '"$@" > /dev/full': ([5, 0], PRINTING),
    '"$@" 2>&- >/dev/null': ([0], WAYS),
    '"$@" 2>/dev/full >/dev/null': ([0], WAYS),
    '"$@" <&- >&- 2>&-': ([0], WAYS),
}


@pytest.mark.parametrize("how", STREAMS)
def test_commands_whose_output_cannot_be_written_have_no_traceback(
    after_a_run: Site, how: str
) -> None:
    here = after_a_run
    (here.home / "new.yaml").unlink(missing_ok=True)
    here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"iterations": 1}}})

    codes, commands = STREAMS[how]
    found = {}
    for arguments in commands:
        done = subprocess.run(
            ["bash", "-c", how, "bash", "osbench-coord", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(here.home),
            cwd=here.home,
            timeout=PATIENCE_S,
            check=False,
        )
        found[" ".join(arguments)] = (done.returncode, done.stderr)

    assert not [one for one in found.items() if one[1][0] not in codes]
    assert not [one for one in found.items() if "Traceback" in one[1][1]]
    assert not [one for one in found.items() if "Exception ignored" in one[1][1]]
    if how.endswith("/dev/full"):
        said = "Error: cannot write to standard output: No space left on device"
        assert all(said in err for code, err in found.values() if code)
        assert [name for name, (code, _) in found.items() if not code] == ["init new.yaml"]


def test_a_run_whose_report_finds_no_room_is_there(here: Site) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            ["osbench-coord", *RUN[:3], "--times", "1", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(here.home),
            cwd=here.home,
            timeout=PATIENCE_S,
            check=False,
        )

    assert done.returncode == 5
    assert "cannot write to standard output" in done.stderr
    (again,) = here.coord("results", "last", "--json").result["workloads"]
    assert again["accounting"]["ok"] == 1
