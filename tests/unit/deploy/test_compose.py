"""The compose file: true to the image, to osbench's commands, and without secrets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from helpers.composefile import NotSet, read, seconds
from helpers.readme import REPOSITORY
from osbench.common.config.options import OPTIONS
from osbench.coordinator.front.cli import main as coord
from osbench.worker.main import main as worker

DEPLOY = REPOSITORY / "deploy"
FILE = DEPLOY / "compose.yaml"
USER = {"OSBENCH_USER": "1000:1000"}

#: What of the Compose Specification the file uses; anything else is a slip of the pen.
KNOWN = {
    "build", "cap_drop", "command", "depends_on", "entrypoint", "healthcheck", "image", "init",
    "profiles", "read_only", "restart", "secrets", "security_opt", "stop_grace_period", "tmpfs",
    "ulimits", "user", "volumes",
}  # fmt: skip


@pytest.fixture
def services() -> dict[str, Any]:
    found = read(FILE, USER)["services"]
    assert isinstance(found, dict)
    return found


def test_docker_takes_the_file(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    version = [docker or "", "compose", "version"]
    if not docker or subprocess.run(version, capture_output=True, check=False).returncode:
        pytest.skip("no docker with the compose plug-in")
    copy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns("secrets", "data"))

    done = subprocess.run(
        [docker, "compose", "--file", copy / "compose.yaml", "--profile", "run", "config"],
        env={"PATH": str(Path(docker).parent), **USER},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_services_have_only_settings_that_compose_knows(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert set(service) <= KNOWN, name


def test_nothing_runs_before_the_user_is_named() -> None:
    with pytest.raises(NotSet, match="OSBENCH_USER"):
        read(FILE, {})


def test_no_container_may_more_than_it_needs(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["user"] == USER["OSBENCH_USER"], name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "privileged" not in service, name
        assert "environment" not in service, name


def test_secrets_that_services_name_are_those_that_new_secrets_makes(
    services: dict[str, Any], tmp_path: Path
) -> None:
    made = tmp_path / "secrets"
    subprocess.run([DEPLOY / "new-secrets", made], check=True)

    declared = read(FILE, {**USER, "OSBENCH_SECRETS": str(made)})["secrets"]

    used = {one["source"] for service in services.values() for one in service["secrets"]}
    assert used == set(declared)
    # what signs certificates goes to no host
    made_for_hosts = {str(path) for path in made.iterdir() if path.name != "ca-key.pem"}
    assert {one["file"] for one in declared.values()} == made_for_hosts


def test_each_service_has_the_secrets_of_its_own_user_only(services: dict[str, Any]) -> None:
    for name, service in services.items():
        role = name.removeprefix("osbench-")
        sources = {one["source"] for one in service["secrets"]}
        expected = {f"{role}.conf", f"{role}.pem", f"{role}-key.pem", "ca.pem"}
        assert sources == expected | (set() if role == "redis" else {"keys"})


def test_a_worker_has_the_time_to_drain(services: dict[str, Any]) -> None:
    (drain_s,) = [one.default for one in OPTIONS["worker"] if one.dest == "drain_timeout_s"]

    assert seconds(services["worker"]["stop_grace_period"]) >= drain_s + 10


def test_commands_of_services_are_commands_of_osbench(services: dict[str, Any]) -> None:
    lines = [
        services["worker"]["command"],
        services["worker"]["healthcheck"]["test"][4:],
        services["coordinator"]["entrypoint"] + services["coordinator"]["command"],
    ]

    for name, *given in lines:
        program = {"osbench-worker": worker, "osbench-coord": coord}[name]
        done = CliRunner().invoke(program, [*given, "--help"])
        assert done.exit_code == 0, (name, given, done.output)


def test_paths_in_the_file_are_there(services: dict[str, Any]) -> None:
    build = services["worker"]["build"]
    tasks = services["coordinator"]["volumes"][0]["source"]

    context = DEPLOY / build["context"]
    assert (context / build["dockerfile"]).is_file()
    assert list((DEPLOY / tasks).glob("*.yaml"))
    assert services["coordinator"]["image"] == services["worker"]["image"]
