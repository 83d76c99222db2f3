"""The secrets script, systemd units and logging samples."""

from __future__ import annotations

import configparser
import logging
import logging.config
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from helpers.readme import REPOSITORY
from osbench.common.config.config import load
from osbench.common.config.options import OPTIONS
from osbench.common.protocol.keyring import Keyring
from osbench.worker.process.health_check import HANG_S

DEPLOY = REPOSITORY / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def new_secrets(
    *arguments: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DEPLOY / "new-secrets", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        # a group of its own, which a test may interrupt
        start_new_session=True,
    )


def setting(unit: Path, name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", unit.read_text("utf-8"), re.M)
    return str(value)


def shown(certificate: Path, *what: str) -> str:
    """What openssl says of a certificate."""
    return subprocess.run(
        ["openssl", "x509", "-noout", "-in", certificate, *what],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_new_secrets_makes_what_osbench_reads(tmp_path: Path) -> None:
    made = tmp_path / "below" / "secrets"

    done = new_secrets(made, "redis.example", "10.0.0.9", "fd00::9", "node-7.dc2")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(Keyring.load(made / "keys").keys) == 1
    redis = (made / "redis.conf").read_text().splitlines()
    assert "maxmemory-policy noeviction" in redis
    assert "tls-auth-clients yes" in redis
    for role in ("coordinator", "worker"):
        # where hosts have them
        text = (made / f"{role}.conf").read_text().replace("/etc/osbench/", f"{made}/")
        (tmp_path / "osbench.conf").write_text(text)
        conf = load([str(tmp_path / "osbench.conf")])
        address = urlsplit(conf.messaging.redis_url)
        assert (address.scheme, address.hostname, address.port) == ("rediss", "redis.example", 6379)
        assert address.username == f"osbench-{role}"
        assert len(address.password or "") == 48
        (user,) = [line for line in redis if line.startswith(f"user osbench-{role} ")]
        assert f" >{address.password} " in user
        given = parse_qs(address.query)
        assert given["ssl_certfile"] == [str(made / f"{role}.pem")]
        usage = shown(made / f"{role}.pem", "-ext", "extendedKeyUsage")
        assert "TLS Web Client Authentication" in usage
    names = shown(made / "redis.pem", "-ext", "subjectAltName")
    for name in ("DNS:localhost", "IP Address:127.0.0.1", "DNS:redis.example", "DNS:node-7.dc2",
                 "IP Address:10.0.0.9", "IP Address:FD00:0:0:0:0:0:0:9"):  # fmt: skip
        assert name in names
    assert "user default off" in redis
    assert not any("PASSWORD" in line for line in redis)


def test_certificates_are_renewed_and_nothing_else(tmp_path: Path) -> None:
    made = tmp_path / "secrets"
    new_secrets(made, "10.0.0.9")
    before = {path.name: path.read_bytes() for path in made.iterdir()}

    done = new_secrets("--renew", made, "10.0.0.9", "another.example")

    after = {path.name: path.read_bytes() for path in made.iterdir()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert (done.returncode, done.stderr) == (0, "")
    assert changed == {f"{role}{end}" for role in ("redis", "coordinator", "worker")
                       for end in (".pem", "-key.pem")}  # fmt: skip
    assert set(after) == set(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o600}
    assert "DNS:another.example" in shown(made / "redis.pem", "-ext", "subjectAltName")
    for role in ("redis", "coordinator", "worker"):
        chain = ["openssl", "verify", "-CAfile", made / "ca.pem", made / f"{role}.pem"]
        subprocess.run(chain, check=True, capture_output=True)


def test_renewed_certificates_keep_the_names_that_were_given_before(tmp_path: Path) -> None:
    made = tmp_path / "secrets"
    new_secrets(made, "redis.example", "10.0.0.9", "fd00::9")
    before = shown(made / "redis.pem", "-ext", "subjectAltName")

    new_secrets("--renew", made)
    alone = shown(made / "redis.pem", "-ext", "subjectAltName")
    new_secrets("--renew", made, "redis.example", "another.example")
    more = shown(made / "redis.pem", "-ext", "subjectAltName")

    assert alone == before
    assert more.strip() == f"{before.strip()}, DNS:another.example"


#: What an openssl does that cannot go on where it is to sign the last of the certificates.
FAILURES = {
    "fails": "exit 1",
    "is interrupted": "kill -INT 0; sleep 5",
    "finds the disk full": ': >"$target"; exit 0',
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=list(FAILURES))
def test_a_failure_half_way_leaves_nothing_and_changes_nothing(
    tmp_path: Path, failure: str
) -> None:
    made, tools = tmp_path / "secrets", tmp_path / "tools"
    new_secrets(made)
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    tools.mkdir()
    broken = tools / "openssl"
    broken.write_text(
        '#!/bin/sh\nfor target; do :; done\ncase $* in *"-req -in"*worker.pem) '
        f'{failure} ;; esac\nexec {shutil.which("openssl")} "$@"\n'
    )
    broken.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    renewed = new_secrets("--renew", made, env=environment)
    new = new_secrets(tmp_path / "new", env=environment)

    for done in (renewed, new):
        assert done.returncode > 0
        assert "not done; " in done.stderr
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secrets", "tools"]


def test_what_new_secrets_has_not_made_is_not_renewed(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()

    done = new_secrets("--renew", tmp_path)

    assert done.returncode == 1
    assert "ca-key.pem is not there" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]


@pytest.mark.parametrize("name", ["a,DNS:evil", "redis example", "a\nb", "$(id)"])
def test_a_host_is_a_name_or_an_address(tmp_path: Path, name: str) -> None:
    done = new_secrets(tmp_path / "secrets", name)

    assert done.returncode == 2
    assert "neither a name nor an address" in done.stderr
    assert not (tmp_path / "secrets").exists()


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


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--renew",), ("a", "")])
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
    for timer in (DEPLOY / "systemd").glob("*.timer"):
        shutil.copy(timer, tmp_path)

    done = subprocess.run(
        [tool, "verify", *sorted(tmp_path.iterdir())], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(UNITS) == 3


@pytest.mark.parametrize(
    ("ran", "trend", "code"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (4, 1, 1), (5, 0, 5)]
)
def test_a_night_looks_at_trends_after_a_failed_run_too(
    tmp_path: Path, ran: int, trend: int, code: int
) -> None:
    unit = (DEPLOY / "systemd" / "osbench-nightly.service").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", unit, flags=re.M)
    commands = tmp_path / "osbench-coord"
    commands.write_text(
        f'#!/bin/sh\necho "$1" >> {tmp_path}/log\n[ "$1" = run ] && exit {ran}\nexit {trend}\n'
    )
    commands.chmod(0o755)
    script = line.replace("/opt/osbench/bin/osbench-coord", str(commands)).replace("$$", "$")

    done = subprocess.run(["/bin/sh", "-c", script], check=False)

    assert (tmp_path / "log").read_text() == "run\ntrends\n"
    assert done.returncode == code


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
