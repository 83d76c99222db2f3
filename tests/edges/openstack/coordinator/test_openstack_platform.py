"""Timeouts of the coordinator's host reach runs whose deployment is a cloud, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from osbench.common.config import rally_conf
from osbench.common.errors import ConfigError
from osbench.edges.openstack.coordinator.openstack_platform import OpenStackPlatform


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rally's configuration file; it is not there yet."""
    found = tmp_path / "rally.conf"
    monkeypatch.setattr(rally_conf, "FILES", (found,))
    return found


def test_iterations_get_the_timeouts_of_rally_conf(file: Path) -> None:
    without = OpenStackPlatform().context()
    file.write_text("[openstack]\nnova_server_boot_timeout = 4\n")

    assert without == {}
    assert OpenStackPlatform().context() == {"wait_timeouts": {"nova_server_boot_timeout": 4.0}}


def test_a_timeout_that_is_no_number_is_refused(file: Path) -> None:
    file.write_text("[openstack]\nnova_server_boot_timeout = soon\n")

    with pytest.raises(ConfigError, match="nova_server_boot_timeout must be a number"):
        OpenStackPlatform().context()
