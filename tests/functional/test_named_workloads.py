"""A workload that the task names is called so in every output of its run."""

from __future__ import annotations

import json

import pytest

from helpers.runs import Cluster, Finished, Site

pytestmark = pytest.mark.functional

NAME = "Checkout of a cart with forty-two items and a voucher"

#: Title of the task, which holds the name of nothing else.
TASK = {
    "version": 2,
    "title": "Nightly",
    "subtasks": [
        {
            "title": "Shop",
            "workloads": [
                {
                    "name": NAME,
                    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
                    "runner": {"constant": {"times": 5}},
                    "hooks": [],
                },
                {"scenario": {"Dummy.dummy": {}}},
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def done(fleet: Cluster) -> tuple[Site, Finished]:
    here = fleet.site
    task = here.write("task.json", json.dumps(TASK))
    outputs = ("--report", "report.html", "--export", "junit=junit.xml")
    return here, here.coord("run", str(task), *outputs, "--export", "rally=rally.json")


def test_text_and_progress_call_it_by_its_name(done: tuple[Site, Finished]) -> None:
    _, run = done

    assert run.code == 0, run.err
    assert f"0. {NAME}  Dummy.dummy  constant  (Shop)" in run.out
    assert "1. Dummy.dummy  serial  (Shop)" in run.out
    assert f"s] {NAME} " in run.err


def test_files_call_it_by_its_name(done: tuple[Site, Finished]) -> None:
    here, _ = done

    html, junit = ((here.home / name).read_text() for name in ("report.html", "junit.xml"))
    rally = json.loads((here.home / "rally.json").read_text())

    assert f">{NAME}</a></h2>" in html
    assert f'classname="Shop" name="{NAME} [0]"' in junit
    # Rally has no such name, and reads scenarios
    workload = rally["tasks"][0]["subtasks"][0]["workloads"][0]
    assert list(workload["scenario"]) == ["Dummy.dummy"]


def test_results_and_comparisons_call_it_by_its_name(done: tuple[Site, Finished]) -> None:
    here, run = done
    other = here.coord("run", str(here.home / "task.json"), "--json").result["run_id"]

    first, second = here.call("results", "last", "--json").printed["workloads"]
    again = here.call("results", "last").out
    compared = here.call("compare", run.out.split()[1], other)

    assert (first["name"], first["scenario"]) == (NAME, "Dummy.dummy")
    assert (second["name"], second["scenario"]) == ("Dummy.dummy", "Dummy.dummy")
    assert NAME in again
    assert NAME in compared.out, compared.err


def test_a_part_of_the_task_is_chosen_by_the_name(done: tuple[Site, Finished]) -> None:
    here, _ = done
    task = str(here.home / "task.json")

    taken = here.call("validate", task, "--workload", NAME, "--set", f"Shop.{NAME}.warmup=1s")
    refused = here.call("validate", task, "--workload", "Chekout")

    assert (taken.code, "1 workload" in taken.out) == (0, True)
    assert refused.code == 2
    assert "there is no such workload" in refused.err
