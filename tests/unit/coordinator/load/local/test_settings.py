"""The configuration file of private workers says what is in force."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from osbench.common.config import config
from osbench.coordinator.load.local.settings import worker_environment, write_config

CHANGES = {
    ("messaging", "redis_url"): "unix:///run/x/redis.sock",
    ("security", "key_file"): Path("/run/x/keys"),
}


def test_what_is_in_force_is_read_back_and_changes_win(tmp_path: Path) -> None:
    own = tmp_path / "own.conf"
    own.write_text(
        "[DEFAULT]\ndata_dir = /data/$$5\n[messaging]\nredis_url = redis://h/0\n"
        "[worker]\nlabel = a label\nmax_stuck = 7\nplugin_path = /a.py,/b\nship_interval_s = 0.3\n"
        "[benchmark]\nenable_profiler = false\n"
    )
    file = tmp_path / "private.conf"

    write_config(file, config.load([str(own)]), CHANGES)

    conf = config.load([str(file)])
    assert conf.messaging.redis_url == "unix:///run/x/redis.sock"
    assert conf.messaging.broker_url is None
    assert conf.security.key_file == "/run/x/keys"
    assert conf.data_dir == "/data/$5"
    assert conf.worker.label == "a label"
    assert conf.worker.max_stuck == 7
    assert conf.worker.plugin_path == ["/a.py", "/b"]
    assert conf.worker.ship_interval_s == 0.3
    assert conf.benchmark.enable_profiler is False


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    own = tmp_path / "own.conf"
    own.touch()
    file = tmp_path / "private.conf"

    write_config(file, config.load([str(own)]), CHANGES)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_variable_that_sets_an_option_does_not_reach_the_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_SECURITY__KEY_FILE", "/other/keys")
    monkeypatch.setenv("OS_DEFAULT__LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("OS_CLOUD", "devstack")

    environment = worker_environment()

    assert "OS_SECURITY__KEY_FILE" not in environment
    assert "OS_DEFAULT__LOG_LEVEL" not in environment
    assert environment["OS_CLOUD"] == "devstack"
