"""`certify` and `verify` with whole runs: the report of a live coordinator is counted again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks, files
from helpers.runs import Cluster, Site
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.certificate.run_evidence import evidence_of
from servers import folder

pytestmark = pytest.mark.functional

GUIDE = "docs/certificate.md"
#: Met by the planned times of arrivals alone, however busy the machine is.
CRITERION = """
from osbench.plugin import sla


class SlowEnough(sla.Sla):
    NAME = "slow_enough"

    def __init__(self, config):
        super().__init__(config)
        self.dues = []

    def add(self, columns):
        self.dues += columns.due.tolist()

    def check(self, statistics):
        span_s = max(1, max(self.dues) - min(self.dues)) / 1e9
        rate = (len(self.dues) - 1) / span_s
        return self.verdict(rate <= 30, f"{rate:.3g}/s")
"""
TASK = """
version: 2
title: Naps
subtasks:
  - title: Search
    scenario: {Dummy.dummy: {sleep: 0.001}}
    runner: {search: {low: 20, high: 200, hold: 1, settle: 0.1, precision: 0.9}}
    sla: {slow_enough: {}}
  - title: Failing
    scenario: {Dummy.dummy_exception_probability: {exception_probability: 0.3}}
    runner: {constant: {times: 60, concurrency: 3}}
    sla: {failure_rate: {max: 100}}
  - title: Open
    scenario: {Dummy.dummy: {sleep: 0.01}}
    runner: {rps: {rps: 25, duration: 2}}
    warmup: 0.4
    sla: {percentile: {p: 95, max_s: 5}}
"""


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with the samples and an empty folder to type in."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        yield Machine(home, folder=desk, forked=True)


@pytest.fixture(scope="module")
def here(fleet: Cluster) -> Site:
    """A site with a worker, a criterion and a key, and a run of each kind of load."""
    (fleet.site.home / "criterion.py").write_text(CRITERION)
    fleet.site.write("task.yaml", TASK)
    done = fleet.site.coord("run", "task.yaml", "--plugin-path", "criterion.py", "--json")
    assert done.code == 0, done.out + done.err
    made = fleet.site.call("certify", "--new-key", "team.key")
    assert made.code == 0, made.err
    return fleet.site


def test_the_commands_of_the_guide_seal_verify_and_refuse(machine: Machine) -> None:
    making, server, sealing, *checks = blocks("certificate", GUIDE)
    for name, text in files(GUIDE).items():
        (machine.folder / name).write_text(machine.text(text), encoding="utf-8")

    made = machine.run(making)
    with machine.running(server) as terminal:
        machine.wait_for_port("8080", terminal)
        sealed = machine.run(sealing)
    by_key, by_files, changed = map(machine.run, checks)

    assert "-----BEGIN PUBLIC KEY-----" in made
    assert "none lost." in sealed
    assert (machine.folder / "items.html").read_text("utf-8").startswith("<!doctype html>")
    assert "Give the files by --run" in by_key
    assert "give each sealed count, time, interval, verdict and capacity" in by_files
    assert "The task file has the sealed digest." in by_files
    assert "exit code 1" in changed


def test_each_kind_of_load_is_counted_again_exactly(here: Site) -> None:
    directory = RunDirectory.find(str(here.data), "last")

    # raises if any part of the report is not what journal and blocks give
    found = evidence_of(directory, Plugins((str(here.home / "criterion.py"),)))

    search, failing, opened = found.workloads
    assert search.search is not None
    assert failing.accounting.planned == 60
    assert failing.accounting.failed == 60 - failing.accounting.ok
    assert opened.accounting.planned == 50
    assert opened.warmup.left_out > 0


def test_a_third_party_verifies_the_run_and_a_dropped_block_is_refused(
    here: Site, tmp_path: Path
) -> None:
    sealing = here.call(
        "certify",
        "last",
        "--key",
        "team.key",
        "--output",
        "c.json",
        "--plugin-path",
        "criterion.py",
    )
    assert sealing.code == 0, sealing.err
    source = RunDirectory.find(str(here.data), "last").path
    copied = tmp_path / source.name
    shutil.copytree(source, copied)
    known = ("verify", "c.json", "--public-key", "team.key.pub", "--run", str(copied), "--json")

    found = here.call(*known, "--plugin-path", "criterion.py")
    without = here.call(*known)
    (copied / "blocks").write_bytes((copied / "blocks").read_bytes()[:-1])
    cut = here.call(*known, "--plugin-path", "criterion.py")

    assert found.code == 0, found.out + found.err
    assert json.loads(found.out)["has_files"] is True
    assert without.code == 1
    assert "name its file by --plugin-path" in without.out
    assert cut.code == 1
    assert "blocks was changed" in cut.out
