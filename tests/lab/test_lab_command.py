"""`make lab` and `make lab-stop`, as docs/lab.md says."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from helpers.commands import BIN, environment
from helpers.processes import is_living
from helpers.readme import REPOSITORY, blocks
from servers import folder

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

# `make` of the checkout sets .venv up; the interpreter of the tests is set up.
MAKE = '#!/bin/sh\nexec /usr/bin/make --assume-old=.venv/.ready BIN={bin} "$@"\n'


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A checkout with its own build folder, so that no lab of the user's is touched."""
    with folder() as path:
        for name in ("Makefile", "tests"):
            (path / name).symlink_to(REPOSITORY / name)
        commands = path / "commands"
        commands.mkdir()
        (commands / "make").write_text(MAKE.format(bin=BIN))
        (commands / "make").chmod(0o755)
        try:
            yield path
        finally:
            typed(path, "make lab-stop")


def typed(checkout: Path, commands: str) -> str:
    """What commands print that are typed in the checkout; the first that fails ends them."""
    env = environment(checkout)
    cache = Path.home() / ".cache" / "osbench-lab"
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", commands],
        cwd=checkout,
        env={
            "OSBENCH_LAB_DIR": str(cache),
            **env,
            "PATH": f"{checkout / 'commands'}:{env['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def processes(checkout: Path) -> dict[str, int]:
    """Process ids of the lab, by name."""
    noted = (checkout / "build" / "lab" / "run").glob("*.pid")
    return {file.stem: json.loads(file.read_text())["pid"] for file in noted}


@pytest.mark.usefixtures("whole")
def test_the_lab_as_its_page_says(checkout: Path) -> None:
    (block,) = blocks("lab", "docs/lab.md")
    *before, stop = block.text.splitlines()

    said = typed(checkout, "\n".join(before))
    started = processes(checkout)
    typed(checkout, 'make lab LAB="keystone --profiler off"')
    untraced = processes(checkout)
    stopped = typed(checkout, stop)

    assert set(started) == {"redis", "keystone", "zaqar"}
    assert "Created deployment lab" in said
    changed = {name for name in started if started[name] != untraced[name]}
    assert changed == {"keystone"}
    assert "zaqar: stopped" in stopped
    assert processes(checkout) == {}
    assert not [pid for pid in untraced.values() if is_living(pid)]


def test_a_lab_of_one_server_is_started_mended_moved_and_stopped(checkout: Path) -> None:
    create = "osbench-coord deployment create --name lab --file build/lab/deployment.json"
    said = typed(checkout, f'make lab LAB="redis"\n{create}')
    first, port = processes(checkout), ports(checkout)["redis"]
    lab = checkout / "build" / "lab"
    deployment = (lab / "deployment.json").read_text()
    commands = [psutil.Process(pid).cmdline() for pid in first.values()]

    typed(checkout, 'make lab LAB="redis"')
    second = processes(checkout)
    psutil.Process(second["redis"]).kill()
    typed(checkout, 'make lab LAB="redis"')
    third = processes(checkout)
    after = (lab / "deployment.json").read_text()
    stopped = typed(checkout, "make lab-stop")
    left = processes(checkout)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        typed(checkout, 'make lab LAB="redis"')

    assert "Created deployment lab" in said
    assert set(first) == {"redis"}
    # secrets are for their owner only
    assert lab.stat().st_mode & 0o077 == 0
    for name in ("deployment.json", "openrc", "lab.json", "redis/redis.conf"):
        assert (lab / name).stat().st_mode & 0o077 == 0, name
    for secret in json.loads((lab / "lab.json").read_text())["secrets"].values():
        assert secret not in str(commands)
    # a second start leaves all as it is, and a third mends what died
    assert second == first
    assert third["redis"] != first["redis"]
    assert after == deployment
    assert "redis: stopped" in stopped
    assert left == {}
    assert not is_living(third["redis"])
    # a port that a stranger holds is left to him
    assert set(processes(checkout)) == {"redis"}
    assert ports(checkout)["redis"] != port


def ports(checkout: Path) -> dict[str, int]:
    """The lab's ports, by name."""
    state = json.loads((checkout / "build" / "lab" / "lab.json").read_text())
    return dict(state["ports"])
