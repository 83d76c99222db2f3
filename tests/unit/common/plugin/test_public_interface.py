"""`osbench.plugin` says what it holds, and loads nothing of the coordinator for a scenario."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

import osbench.plugin

#: Modules that only those plug-ins load which ask for them.
FURTHER = ("cloud", "errors", "formatting", "spreadsheet", "statistics")


def test_the_interfaces_are_the_eight() -> None:
    assert sorted(osbench.plugin.__all__) == [
        *("atomic", "context", "exporter", "hook", "runner", "scenario", "sla", "trigger")
    ]
    assert all(hasattr(osbench.plugin, name) for name in osbench.plugin.__all__)


@pytest.mark.parametrize("module", ["osbench.plugin", "osbench.plugin.errors"])
def test_a_scenario_loads_neither_coordinator_nor_worker(module: str) -> None:
    code = (
        f"import sys, {module};"
        "print([m for m in sys.modules if m.startswith(('osbench.coordinator', 'osbench.worker',"
        " 'osbench.plugin.cloud', 'celery', 'redis', 'keystoneauth1'))])"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert printed.stdout.decode().strip() == "[]"


@pytest.mark.parametrize("name", FURTHER)
def test_a_further_module_exports_what_its_docstring_explains(name: str) -> None:
    module = importlib.import_module(f"osbench.plugin.{name}")

    told = re.findall(r"^- (.*?)(?=^- |^$|\Z)", module.__doc__ or "", re.M | re.S)

    assert set(module.__all__) <= set(re.findall(r"`(\w+)", " ".join(told)))
    assert all(hasattr(module, one) for one in module.__all__)
