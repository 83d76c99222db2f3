"""Modules that short commands do not import: most of the time of a short run is imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.commands import LENIENT, environment
from servers.child import PATIENCE_S

#: Heavy packages that no part of osbench needs to say what it can do.
HEAVY = {
    "asyncio",
    "celery",
    "cryptography",
    "jsonschema",
    "kombu",
    "numpy",
    "oslo_config",
    "redis",
}
HEAVY |= {"importlib.metadata", "requests", "rich", "tempfile", "urllib3", "yaml"}
#: Packages of clouds, and of HTTP clients for the end of a run.
UNUSED = {"keystoneauth1", "pycurl", "requests", "rich.progress", "urllib3"}
#: What explains slow iterations; a run without requests and traces has nothing to explain.
EXPLAINING = {
    "osbench.edges.traces.counters.counter_collection",
    "osbench.coordinator.report.html",
    "osbench.edges.traces.analysis",
    "osbench.edges.traces.collection.collector",
    "osbench.edges.traces.receiving",
    "osbench.edges.traces.sources.trace_backend",
    "osbench.coordinator.front.web",
}
#: Runs the command of `sys.argv`, and writes the modules of its process to the file MODULES.
COMMAND = """
import json, os, sys
sys.argv[0] = "osbench-coord"
from osbench.coordinator.main import main
try:
    main()
finally:
    with open(os.environ["MODULES"], "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def modules_of(folder: Path, code: str, *arguments: str) -> set[str]:
    """The modules of a process that runs `code`, and writes them to the file MODULES."""
    found = folder / "modules.json"
    subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        env=environment(folder)
        | LENIENT
        | {"MODULES": str(found), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE_S,
    )
    return set(json.loads(found.read_text()))


@pytest.mark.parametrize(
    ("option", "needed"),
    [
        # commands of edges are found in the metadata of packages, which imports `tempfile`
        ("--help", {"importlib.metadata", "tempfile"}),
        ("--version", set()),
    ],
)
def test_help_imports_little_but_click(tmp_path: Path, option: str, needed: set[str]) -> None:
    found = modules_of(tmp_path, COMMAND, option)

    assert "click" in found
    assert found & HEAVY == needed


def test_workers_start_before_the_coordinator_imports_what_a_run_needs(tmp_path: Path) -> None:
    found = modules_of(
        tmp_path,
        "import json, os, sys; import osbench.coordinator.main;"
        " import osbench.coordinator.front.cli.commands.run;"
        " json.dump(sorted(sys.modules), open(os.environ['MODULES'], 'w'))",
    )

    assert "osbench.coordinator.load.local.local_start" in found
    assert sorted(found & (HEAVY - {"importlib.metadata", "oslo_config", "tempfile"})) == []


def test_the_coordinator_of_a_run_without_requests_imports_nothing_for_them(tmp_path: Path) -> None:
    run = ("run", "--scenario", "Dummy.dummy", "--times", "1", "--workers", "1", "--quiet")

    found = modules_of(tmp_path, COMMAND, *run)

    assert {"celery", "numpy", "osbench.coordinator.report.text"} <= found
    assert sorted(found & (UNUSED | EXPLAINING)) == []


def test_workers_import_what_a_run_needs_before_they_know_it(tmp_path: Path) -> None:
    found = modules_of(
        tmp_path,
        "import json, os, sys; import osbench.worker.main;"
        " from osbench.worker.process.prepared_start import await_arguments;"
        " assert await_arguments() is None;"
        " json.dump(sorted(sys.modules), open(os.environ['MODULES'], 'w'))",
    )

    assert {"celery", "numpy", "redis", "osbench.worker.process.process"} <= found
    assert sorted(found & (UNUSED | {"jsonschema", "rich"})) == []
    assert not [one for one in found if one.startswith("osbench.coordinator")]
