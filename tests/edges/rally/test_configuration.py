"""Options of Rally's own configuration file: which are taken, and which are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

from rally.common.cfg import CONF

from osbench.edges.rally import configuration, importing

FILE = """
[DEFAULT]
debug = true
scenario_resource_name_format = mine_XXXXXXXX_XXXXXXXX
[database]
connection = sqlite:////tmp/pw-hidden
[benchmark]
enable_profiler = False
nova_server_boot_poll_interval = 2
[openstack]
nova-server-boot-timeout = 100
no_such_option = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A file that Rally has read."""
    importing.load()
    path = tmp_path / "rally.conf"

    path.write_text(FILE)
    CONF([], project="rally", default_config_files=[str(path)], default_config_dirs=[])
    yield path
    CONF.clear_override("enable_profiler", "openstack")
    CONF([], project="rally", default_config_files=[], default_config_dirs=[])


def test_what_osbench_does_not_take_is_named_without_its_value(file: Path) -> None:
    assert configuration.unused_options(file) == [
        "[DEFAULT] debug",
        "[database] connection",
        "[openstack] no_such_option",
    ]


def test_the_switch_for_tracing_is_taken_under_its_former_name(file: Path) -> None:
    assert configuration.profiles() is False


def test_a_file_that_does_not_say_so_switches_nothing(tmp_path: Path) -> None:
    importing.load()
    CONF([], project="rally", default_config_files=[], default_config_dirs=[])

    assert configuration.profiles() is None
    assert configuration.unused_options(tmp_path / "none.conf") == []


def test_what_workers_are_given_does_not_count_as_the_files() -> None:
    importing.load()
    configuration.apply({})

    try:
        assert configuration.profiles() is None
    finally:
        CONF.clear_override("enable_profiler", "openstack")
