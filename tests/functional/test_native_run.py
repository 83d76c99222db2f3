"""A run of a native task imports nothing of Rally, neither in the coordinator nor in workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.runs import site

pytestmark = pytest.mark.functional

#: Looks at the modules of the process that it is imported in: a worker, in each iteration, and the
#: coordinator, at its end.
PLUGIN = '''
import atexit
import sys
from pathlib import Path

from osbench.plugin import scenario

FOLDERS = ("rally", "rally_openstack", "osbench.edges.rally", "osbench.edges.rally.results")


def of_rally():
    return [one for one in sys.modules if f"{one}.".startswith(tuple(f"{f}." for f in FOLDERS))]


def note():
    name = "worker" if "osbench.worker" in sys.modules else "coordinator"
    Path(__file__).with_name(name).write_text(str(of_rally()))


atexit.register(note)


class Looks(scenario.Scenario):
    @scenario.configure()
    def around(self):
        """Fail if something of Rally is imported."""
        if found := of_rally():
            raise AssertionError(found)
'''


def test_a_native_run_imports_nothing_of_rally(tmp_path: Path) -> None:
    file = tmp_path / "looks.py"
    file.write_text(PLUGIN)
    workload = {
        "scenario": {"Looks.around": {}},
        "runner": {"constant": {"times": 8, "concurrency": 2}},
        "contexts": {"dummy_context": {}},
        "sla": {"failure_rate": {"max": 0}},
    }
    with site() as here:
        task, page = here.task(workload), ("--report", "page.html")
        # a process of its own: others are forked from one that has imported all modules
        begun = here.start(
            "osbench-coord", "run", "--json", task, "--plugin-path", str(file), *page
        )
        done = begun.finish()

        assert done.sums["ok"] == 8, done.err
        assert (tmp_path / "coordinator").read_text() == "[]"
