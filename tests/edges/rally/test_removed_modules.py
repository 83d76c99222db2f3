"""Plug-in files that import what Rally no longer has are told every import, and what to write."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.rally import removed_modules

pytest.importorskip("rally")
pytest.importorskip("rally_openstack")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "from rally.benchmark.scenarios import base",
            "rally.benchmark.scenarios.base was removed in rally 0.1.0: import rally.task.scenario",
        ),
        (
            "import rally.benchmark.types as types",
            "rally.benchmark.types was removed in rally 0.1.0: import rally.task.types",
        ),
        (
            "from rally.benchmark.scenarios.nova import utils",
            "rally.benchmark.scenarios.nova was removed in rally 0.1.0: "
            "import rally_openstack.task.scenarios.nova.utils",
        ),
        (
            "from rally.benchmark.sla.base import SLA, SLAResult",
            "rally.benchmark.sla.base was removed in rally 0.1.0: import rally.task.sla",
        ),
        (
            "from rally.plugins.openstack.scenarios.cinder.utils import CinderBasic",
            "rally.plugins.openstack.scenarios.cinder.utils was removed in rally 1.0.0: "
            "import rally_openstack.task.scenarios.cinder.utils",
        ),
        (
            "from rally import consts, osclients",
            "rally.osclients was removed in rally 1.0.0: import rally_openstack.common.osclients",
        ),
        (
            "from rally.common.i18n import _",
            "rally.common.i18n was removed in rally 3.0.0: messages are no longer translated",
        ),
        (
            "from rally.plugins.openstack.scenarios.murano import utils",
            "rally.plugins.openstack.scenarios.murano was removed in rally 1.0.0: "
            "its service is no longer supported",
        ),
    ],
)
def test_an_import_of_a_removed_module_is_told_with_the_new_one(tmp_path, line, said):
    file = tmp_path / "old.py"
    file.write_text(f"import os\n{line}\n", encoding="utf-8")

    assert removed_modules.imports_removed(file) == [f"{file}:2: {said}"]


def test_modules_that_are_there_are_no_fault(tmp_path):
    file = tmp_path / "new.py"
    file.write_text(
        "from rally import consts\nfrom rally.task import scenario, types\n"
        "from rally.common import logging, objects\nfrom . import beside\nimport rally_other\n"
        "from rally_openstack.task.scenarios.nova.servers import NovaServers\n",
        encoding="utf-8",
    )

    assert removed_modules.imports_removed(file) == []


def test_what_is_to_be_imported_instead_is_there():
    instead = {one.now for one in removed_modules._REMOVALS.values() if one.now}

    assert [one for one in sorted(instead) if importlib.util.find_spec(one) is None] == []


def test_a_task_that_needs_the_file_is_told_all_of_its_imports(tmp_path: Path):
    file = tmp_path / "old.py"
    file.write_text(
        "from rally.benchmark.scenarios import base\nfrom rally.common import log\n\n\n"
        "class Old(base.Scenario):\n    pass\n",
        encoding="utf-8",
    )

    with pytest.raises(PluginError) as raised:
        Plugins([str(file)]).scenario("Old.work")

    assert f"{file}:1: rally.benchmark.scenarios.base was removed" in str(raised.value)
    assert f"{file}:2: rally.common.log was removed" in str(raised.value)
