"""`osbench-coord grow` with a real service that fills: each planted law is named from its spans."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.commands import BIN, LENIENT, environment
from helpers.engines import until
from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks, files
from servers import folder
from servers.child import PATIENCE_S
from truth.growth import LAWS, Planted, grown, planted

pytestmark = pytest.mark.functional

GUIDE = "docs/growth.md"
#: All spans are sent before their response.
CONF = "[traces]\notlp_late_s = 0.5\n"


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with the samples and an empty folder to type in."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        (home / ".osbench").mkdir(mode=0o700)
        (home / ".osbench" / "osbench.conf").write_text(CONF)
        yield Machine(home, folder=desk, forked=True)


def test_the_guide_names_the_request_of_each_law_and_the_statement_of_n_plus_one(
    machine: Machine,
) -> None:
    server, growing = blocks("growth", GUIDE)
    for name, text in files(GUIDE).items():
        (machine.folder / name).write_text(machine.text(text), encoding="utf-8")

    with machine.running(server) as terminal:
        machine.wait_for_port("8080", terminal)
        printed = machine.run(growing)

    assert printed.startswith("GET /pairs makes more SQL quadratically, 82 at 90")
    rows = {
        line.split(":")[0]: line for line in printed.splitlines() if re.match(r"\w+: GET /", line)
    }
    assert "quadratic, 82 " in rows["pairs"]
    assert re.search(r"linear, 1\.0 each +linear, 1\.0 each .*N\+1 *$", rows["ports"])
    assert "logarithmic, 7 " in rows["search"]
    assert "constant 1 " in rows["names"]
    assert "linear, 17 B each" in rows["names"]
    assert "constant 1 " in rows["status"]
    assert "1.0 for each port: filling SELECT * FROM ports WHERE id = ?" in printed
    assert "✓ HttpFlow.run growth: sql: exponent at most 0.00, allowed constant" in printed
    assert "✗ HttpFlow.run growth: spans: GET /ports has exponent 0.96, allowed 0.1" in printed
    assert "exit code 1" in printed
    assert (machine.folder / "growth.html").read_text("utf-8").startswith("<!doctype html>")


def test_laws_with_drawn_coefficients_are_named(tmp_path: Path) -> None:
    plan = planted(seed=7)

    found = grown(plan, tmp_path)

    assert set(found) == set(LAWS)
    for law in LAWS:
        assert found[law] == Planted.named(law), (law, plan)


def test_ctrl_c_prints_what_was_measured_and_leaves_no_process(machine: Machine) -> None:
    server, _ = blocks("growth", GUIDE)
    for name, text in files(GUIDE).items():
        (machine.folder / name).write_text(machine.text(text), encoding="utf-8")
    mark = machine.folder / "filling"
    fill = f"[ $POPULATION -lt 100 ] || {{ touch {mark}; sleep 600; }}"
    command = ["grow", "ports.yaml", "--populate", fill, "--at", "10,100", "--json", "-q"]

    with machine.running(server) as terminal:
        machine.wait_for_port("8080", terminal)
        with subprocess.Popen(
            [str(BIN / "osbench-coord"), *command],
            cwd=machine.folder,
            env=environment(machine.home) | LENIENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            until(mark.exists)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130, err
    found = json.loads(out)
    assert found["populations"] == [10]
    assert found["criteria"] == []
    assert "Traceback" not in err
    assert not subprocess.run(["pgrep", "-f", str(mark)], check=False, capture_output=True).stdout
