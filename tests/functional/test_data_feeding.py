"""A data file's rows reach the iterations of their number, each once, over several workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.runs import Site, checked, site

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

ROWS = 1500


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


def test_every_row_is_used_once_by_the_iteration_of_its_number(here: Site) -> None:
    here.write("sleeps.csv", "sleep:json\n" + "0.3\n" * 60)
    runners = {
        "closed": {"constant_for_duration": {"duration": 120, "concurrency": 12}},
        "open": {"rps": {"times": ROWS, "rps": 1500}},
    }
    files = {name: here.home / name for name in runners}
    task = here.task(
        *(
            {
                "name": name,
                "scenario": {"Shop.enter": {"file": str(files[name])}},
                "args_from": "users.csv",
                "runner": runner,
            }
            for name, runner in runners.items()
        ),
        # it leaves rows: they are no plan of it
        {
            "name": "visit",
            "scenario": {"Dummy.dummy": {}},
            "args_from": "sleeps.csv",
            "runner": {"constant_for_duration": {"duration": 2, "concurrency": 2}},
        },
    )

    done = here.run(task, "--workers", "2")

    *fed, visit = map(checked, done.result["workloads"])
    for sums, file in zip(fed, files.values(), strict=True):
        assert sums["planned"] == sums["ok"] == ROWS
        assert entered(file) == [(n, f"user-{n}", str(n)) for n in range(1, ROWS + 1)]
    assert 0 < visit["planned"] == visit["ok"] < 60
    ended = [note for note in done.result["notes"] if "last row" in note]
    assert ended == ["closed: the load ended with the last row of users.csv"]
    assert "s] visit running: " in done.err
    assert "/60 done" not in done.err
