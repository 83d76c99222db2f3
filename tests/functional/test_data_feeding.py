"""A data file's rows reach the iterations of their number, each once, over several workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.runs import Site, site

pytestmark = pytest.mark.functional

PLUGIN = """
import os
from osbench.plugin import scenario


@scenario.configure(name="Shop.enter")
class Enter(scenario.Scenario):
    def run(self, user, age, file):
        line = f"{self.context['iteration']} {user} {age!r}\\n".encode()
        target = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(target, line)
        os.close(target)
"""

ROWS = 3000


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        plugin = found.write("plugins/shop.py", PLUGIN)
        found.configure({"coordinator": {"plugin_path": plugin.parent}})
        lines = "".join(f"user-{number},{number}\n" for number in range(1, ROWS + 1))
        found.write("users.csv", f"user,age:json\n{lines}")
        yield found


def entered(file: Path) -> list[tuple[int, str, str]]:
    lines = [line.split() for line in file.read_text().splitlines()]
    return sorted((int(number), user, age) for number, user, age in lines)


@pytest.mark.parametrize(
    "runner",
    [
        {"constant": {"times": ROWS, "concurrency": 12}},
        {"constant_for_duration": {"duration": 120, "concurrency": 12}},
        {"rps": {"times": ROWS, "rps": 1500}},
    ],
)
def test_every_row_is_used_once_by_the_iteration_of_its_number(
    here: Site, runner: dict[str, object]
) -> None:
    file = here.home / "entered"
    task = here.task(
        {
            "scenario": {"Shop.enter": {"file": str(file)}},
            "args_from": "users.csv",
            "runner": runner,
        }
    )

    done = here.run(task, "--workers", "3")

    assert done.sums["planned"] == done.sums["ok"] == ROWS
    assert entered(file) == [(n, f"user-{n}", str(n)) for n in range(1, ROWS + 1)]
    ended = ["Shop.enter: the load ended with the last row of users.csv"]
    assert done.result["notes"] == (ended if "constant_for_duration" in runner else [])


def test_rows_that_a_load_for_a_duration_leaves_are_no_plan_of_it(here: Site) -> None:
    task = here.task(
        {
            "name": "Visit",
            "scenario": {"Dummy.dummy": {}},
            "args_from": "sleeps.csv",
            "runner": {"constant_for_duration": {"duration": 3, "concurrency": 2}},
        }
    )
    here.write("sleeps.csv", "sleep:json\n" + "0.3\n" * 60)

    done = here.coord("run", task, "--workers", "1", "--json")

    assert 0 < done.sums["planned"] == done.sums["ok"] < 60
    assert done.result["notes"] == []
    assert "s] Visit running: " in done.err
    assert "/60 done" not in done.err


def test_too_few_rows_are_refused_before_the_load(here: Site) -> None:
    task = here.task(
        {
            "scenario": {"Shop.enter": {"file": "nowhere"}},
            "args_from": "users.csv",
            "runner": {"constant": {"times": ROWS + 1, "concurrency": 2}},
        }
    )

    done = here.coord("run", task)

    assert done.code == 2
    assert "users.csv has 3000 rows and the runner plans 3001 iterations" in done.err
    assert not (here.data / "runs").exists()
