"""What a worker imports before the load."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

CODE = """
import sys
from osbench.edges.rally import importing
from osbench.edges.rally.adapters import client_imports

importing.load()
from rally.task.scenario import Scenario

for name in ("Dummy.dummy", "NovaServers.boot_server", "KeystoneBasic.create_user"):
    client_imports.import_for(Scenario.get(name))
    print(*sorted({"novaclient.v2.client", "keystoneclient.v3.client"} & set(sys.modules)))
"""


@pytest.mark.dear
def test_the_client_libraries_of_a_scenario_are_imported_and_no_others() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120
    )

    nothing, nova, both = done.stdout.splitlines()
    assert nothing == ""
    assert nova == both == "keystoneclient.v3.client novaclient.v2.client"
