"""The secrets script, systemd units and logging samples."""

from __future__ import annotations

import configparser
import logging
import logging.config
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.readme import REPOSITORY
from osbench.common.config.config import load
from osbench.common.config.options import OPTIONS
from osbench.common.protocol.keyring import Keyring
from osbench.worker.process.health_check import HANG_S

DEPLOY = REPOSITORY / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def new_secrets(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DEPLOY / "new-secrets", *arguments], capture_output=True, text=True, check=False
    )


def setting(unit: Path, name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", unit.read_text("utf-8"), re.M)
    return str(value)


def test_new_secrets_makes_what_osbench_reads(tmp_path: Path) -> None:
    made = tmp_path / "below" / "secrets"

    done = new_secrets(made, "redis.example")

    conf = load([str(made / "osbench.conf")])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(Keyring.load(made / "keys").keys) == 1
    assert conf.messaging.redis_url.endswith("@redis.example:6379/0")
    password = conf.messaging.redis_url.split(":")[2].partition("@")[0]
    redis = (made / "redis.conf").read_text().splitlines()
    assert len(password) == 48
    assert f"requirepass {password}" in redis
    assert "maxmemory-policy noeviction" in redis


def test_new_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    made = tmp_path / "secrets"

    new_secrets(made)

    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o600}


def test_new_secrets_differ_each_time_and_replace_none(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    new_secrets(one)
    new_secrets(two)
    before = (one / "keys").read_bytes()

    again = new_secrets(one)

    assert again.returncode != 0
    assert (one / "keys").read_bytes() == before
    assert before != (two / "keys").read_bytes()
    assert (one / "redis.conf").read_bytes() != (two / "redis.conf").read_bytes()


@pytest.mark.parametrize("arguments", [(), ("--help",), ("a", "b", "c")])
def test_new_secrets_tells_how_it_is_used(arguments: tuple[str, ...]) -> None:
    done = new_secrets(*arguments)

    assert done.returncode == 2
    assert "Usage: new-secrets DIRECTORY" in done.stderr


def test_git_and_docker_leave_secrets_alone() -> None:
    ignored = (DEPLOY / ".gitignore").read_text().splitlines()
    first, *allowed = [
        line
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if not line.startswith("#")
    ]

    assert "secrets/" in ignored
    assert first == "*"
    assert not any("deploy" in line for line in allowed)


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze")
    for unit in UNITS:
        # what they start is not installed at these places here
        text = re.sub(
            r"^ExecStart=\S+", f"ExecStart={sys.executable}", unit.read_text(), flags=re.M
        )
        (tmp_path / unit.name).write_text(text)

    done = subprocess.run(
        [tool, "verify", *sorted(tmp_path.iterdir())], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(UNITS) == 2


def test_users_of_the_units_are_made(tmp_path: Path) -> None:
    tool = shutil.which("systemd-sysusers")
    if tool is None:
        pytest.skip("no systemd-sysusers")
    folder = tmp_path / "usr" / "lib" / "sysusers.d"
    folder.mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    shutil.copy(DEPLOY / "systemd" / "osbench.sysusers.conf", folder / "osbench.conf")

    done = subprocess.run([tool, f"--root={tmp_path}"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    users = {line.split(":")[0] for line in (tmp_path / "etc" / "passwd").read_text().splitlines()}
    assert users == {setting(unit, "User") for unit in UNITS}


def test_a_stopped_unit_has_the_time_to_drain() -> None:
    (drain_s,) = [one.default for one in OPTIONS["worker"] if one.dest == "drain_timeout_s"]

    assert float(setting(DEPLOY / "systemd" / "osbench-worker@.service", "TimeoutStopSec")) >= (
        drain_s + 10
    )


@pytest.fixture
def untouched_logging() -> Iterator[None]:
    """Loggers as they were, whatever a test configures."""
    root = logging.getLogger()
    others = [logging.getLogger(name) for name in ("profiler_trace", "workflow_trace")]
    before = root.level, root.handlers[:]
    yield
    for logger in (root, *others):
        for handler in logger.handlers[:]:
            logger.removeHandler(handler)
            if handler not in before[1]:
                handler.close()
    root.setLevel(before[0])
    for handler in before[1]:
        root.addHandler(handler)
    for logger in others:
        logger.propagate = True


def test_trace_points_and_states_of_workflows_go_to_files_of_their_own(
    tmp_path: Path, untouched_logging: None
) -> None:
    sample = (DEPLOY / "logging" / "trace-logging.conf").read_text("utf-8")
    file = tmp_path / "trace-logging.conf"
    file.write_text(sample.replace("/var/log/mistral", str(tmp_path)), "utf-8")

    logging.config.fileConfig(file, disable_existing_loggers=False)
    logging.getLogger("profiler_trace").info("a trace point")
    logging.getLogger("workflow_trace").info("a state")
    logging.getLogger("mistral.engine").warning("a word")

    assert (tmp_path / "traces.log").read_text() == "a trace point\n"
    assert (tmp_path / "workflow-trace.log").read_text().endswith(" WF [-] a state\n")
    (line,) = (tmp_path / "mistral.log").read_text().splitlines()
    assert line.endswith("a word")


def test_the_service_reads_the_logging_sample() -> None:
    service = configparser.ConfigParser()
    service.read(DEPLOY / "logging" / "mistral-profiler.conf")

    named = Path(service["DEFAULT"]["log_config_append"]).name
    assert (DEPLOY / "logging" / named).is_file()
    assert service["profiler"]["enabled"] == "True"
    assert service["profiler"]["hmac_keys"]


def test_the_watchdog_waits_longer_than_what_counts_as_hanging() -> None:
    unit = DEPLOY / "systemd" / "osbench-worker@.service"

    assert float(setting(unit, "WatchdogSec")) >= HANG_S + 30
    assert setting(unit, "NotifyAccess") == "main"
