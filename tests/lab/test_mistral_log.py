"""Mistral as it ships, profiled as its guide says: its own log, ranked by osbench.

Its logging is the file in deploy/, and the executions are started by its own command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.lab.environment import environment
from helpers.runs import Site, site
from servers.child import PATIENCE_S
from services import operations
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

PINS = Path(__file__).parent / "requirements-mistralclient.txt"
WORKFLOWS = """
version: '2.0'
fork:
  tasks:
    begin:
      action: std.echo output='hello'
      on-success: [works, fails]
    works: {action: std.noop}
    fails: {action: std.fail}
each:
  tasks:
    all:
      with-items: i in <% range(0, 5) %>
      action: std.echo output=<% $.i %>
"""
#: As often as each is executed.
TIMES = 2

#: A row of the report in Mistral's guide.
TOTAL, MAX, AVG, COUNT, NAME = 2948.326, 8.612, 1.218, 2420, "engine-on-action-complete"
IN_THE_GUIDE = "2948.326     8.612      1.218      2420          engine-on-action-complete"

#: No workflow here takes so long: these two lines are made by hand, after those of the log.
LONG = """\
2026-01-01T00:00:00.000000          {trace} {trace} {span} task-run-start
2026-01-01T00:20:34.567891 1234.567891 {trace} {trace} {span} task-run-stop  <- !!!
"""


class Command:
    """Mistral's own command, as a user of a lab."""

    def __init__(self, lab: Lab, home: Path) -> None:
        self._folder = environment("mistralclient", PINS)
        self._openrc = lab.folder / "openrc"
        self._home = home

    def __call__(self, *arguments: str, **variables: str) -> str:
        """Run it to its end; what it printed."""
        sourced = '. "$0" && exec "$@"'
        command = [str(self._folder / "bin" / "mistral"), *arguments]
        env = {"PATH": os.environ["PATH"], "HOME": str(self._home), **variables}
        done = subprocess.run(
            ["/bin/sh", "-c", sourced, str(self._openrc), *command],
            env={**env, "OS_MISTRAL_SERVICE_TYPE": "workflowv2"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def execute(self, workflow: str, *arguments: str, **variables: str) -> str:
        """Start an execution; its id."""
        return self(
            "execution-create", workflow, "-f", "value", "-c", "ID", *arguments, **variables
        ).strip()

    def end_of(self, execution: str, within_s: float = PATIENCE_S) -> str:
        """The state in which an execution ended."""
        deadline = time.monotonic() + within_s
        while True:
            state = self("execution-get", execution, "-f", "value", "-c", "State").strip()
            if state not in ("IDLE", "RUNNING"):
                return state
            assert time.monotonic() < deadline, state


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def log(stock_mistral: Lab, here: Site) -> Path:
    """The profiler's log of some executions, Mistral being stopped."""
    mistral = stock_mistral
    command = Command(mistral, here.home)
    command("workflow-create", str(here.write("workflows.yaml", WORKFLOWS)))
    for _ in range(TIMES):
        # As the guide has it; the variable keeps the key out of the list of processes.
        made = [
            command.execute("fork", "--profile", mistral.hmac_key),
            command.execute("each", OS_PROFILE=mistral.hmac_key),
        ]
        assert [command.end_of(one) for one in made] == ["ERROR", "SUCCESS"]
    operations.stop(mistral, ["mistral"])
    return mistral.home("mistral") / "traces.log"


def by_the_guide(log: str) -> list[str]:
    """The rows of the guide's report, read as the guide describes.

    A point writes two entries, and that of its end has its duration in the second column.
    """
    took: dict[str, list[int]] = {}
    for line in log.splitlines():
        columns = line.split()
        if len(columns) > 5 and columns[5].endswith("-stop"):
            microseconds = round(float(columns[1]) * 1e6)
            took.setdefault(columns[5].removesuffix("-stop"), []).append(microseconds)
    rows = [
        row(
            sum(all_of) / 1e6, max(all_of) / 1e6, sum(all_of) / len(all_of) / 1e6, len(all_of), name
        )
        for name, all_of in took.items()
    ]
    return sorted(rows)


def row(total: float, most: float, mean: float, count: int, name: str) -> str:
    """A row of the guide's report, in seconds."""
    return (
        f"{total:.3f}".ljust(13)
        + f"{most:.3f}".ljust(11)
        + f"{mean:.3f}".ljust(11)
        + (str(count).ljust(14) + name)
    )


def ranked(here: Site, log: Path) -> list[str]:
    """The rows of `trace rank LOG OUT`, whose heading is the guide's and whose order is by time."""
    out = here.home / "report.txt"
    done = here.coord("trace", "rank", str(log), str(out))
    assert done.code == 0, done.err
    heading, rule, *rows = out.read_text("utf-8").splitlines()
    assert heading == "Total time | Max time | Avg time | Occurrences | Trace name"
    assert rule == "-" * 91
    totals = [float(one.split()[0]) for one in rows]
    assert totals == sorted(totals, reverse=True)
    return rows


def test_rows_have_the_form_of_the_guide() -> None:
    assert row(TOTAL, MAX, AVG, COUNT, NAME) == IN_THE_GUIDE


def test_executions_of_the_command_are_in_the_log(log: Path) -> None:
    text = log.read_text("utf-8")

    assert text.count(" engine-start-workflow-stop") == 2 * TIMES
    assert text.count(" default-executor-run-action-stop") == TIMES * (3 + 5)


def test_states_of_workflows_have_a_log_of_their_own(log: Path) -> None:
    workflows = log.with_name("workflow-trace.log").read_text("utf-8")

    assert workflows.count("Workflow 'fork' [RUNNING -> ERROR") == TIMES
    assert workflows.count("Workflow 'each' [RUNNING -> SUCCESS") == TIMES
    assert " WF [-] " not in log.read_text("utf-8")


def test_the_ranking_is_the_one_of_the_guide(log: Path, here: Site) -> None:
    rows = ranked(here, log)

    assert sorted(rows) == by_the_guide(log.read_text("utf-8"))
    assert len(rows) > 20


def test_a_thousand_seconds_and_more_are_ranked(log: Path, here: Site, tmp_path: Path) -> None:
    longer = tmp_path / "longer.log"
    shutil.copy(log, longer)
    with longer.open("a", encoding="utf-8") as file:
        file.write(LONG.format(trace=uuid.uuid4(), span=uuid.uuid4()))

    rows = ranked(here, longer)

    assert sorted(rows) == by_the_guide(longer.read_text("utf-8"))
    assert rows[0].split()[1] == "1234.568"


def test_every_line_of_the_log_is_understood(log: Path, here: Site) -> None:
    lines = log.read_text("utf-8").splitlines()
    ends = [name.rpartition("-")[2] for line in lines for name in line.split()[4:6]]
    starts, stops = ends.count("start"), ends.count("stop")

    done = here.coord("trace", "explain", str(log), "--json")
    found = json.loads(done.out)

    print(f"{len(lines)} lines, {starts} starts, {stops} stops, {found['census']['traces']} traces")
    assert found["skipped"] == 0
    assert starts + stops == len(lines)
    ((_, spans),) = found["census"]["services"].items()
    assert spans["count"] == starts
    assert found["census"]["lost_stops"] == starts - stops
