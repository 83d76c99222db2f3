"""Requests to change a load: which workload they mean, and what is decided."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.coordinator.load.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.load.run.steering.steering import Steering
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.storage import control_requests
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.capacity.search import Search


class Desk:
    """A run whose workloads are under load for 20 s: number 0 is open, 1 and 2 are closed."""

    def __init__(self, path: Path) -> None:
        self.accounts = Accounts()
        self.journal: list[dict[str, Any]] = []
        self.folder = path / control_requests.FOLDER
        self.folder.mkdir()
        services: Any = SimpleNamespace(
            directory=RunDirectory(path),
            accounts=self.accounts,
            port=SimpleNamespace(decide=self._decide),
        )
        self.steering = Steering(services)
        self.runs: list[Any] = [
            self._run(0, "A.open", Rps({"times": 900, "rps": 10})),
            self._run(1, "B.closed", Constant({"times": 900, "concurrency": 4})),
            self._run(2, "B.closed", Constant({"times": 900, "concurrency": 4})),
        ]

    def _decide(self, records: Any) -> None:
        for record in records:
            self.journal.append(record)
            self.accounts.apply(record)

    def _run(self, number: int, name: str, runner: Any) -> Any:
        return SimpleNamespace(
            plan=SimpleNamespace(number=number, runner=runner),
            name=name,
            runner=SteeredRunner(runner, self.accounts.changes[number]),
            is_open=runner.OPEN,
            under_load=True,
            elapsed=lambda: 20.0,
            dispatcher=SimpleNamespace(cut=lambda _: (20.5, 205)),
            workers=SimpleNamespace(active=[SimpleNamespace(capacity=8)] * 2),
        )

    def ask(self, request: str = "load-1", **asked: Any) -> str:
        """The answer to a request: what was said, or why not."""
        place = self.folder / request
        place.with_suffix(".asked").write_text(json.dumps(asked))
        self.steering.look(self.runs)
        found = json.loads(place.with_suffix(".answered").read_text())
        return str(found.get("said") or f"no: {found['error']}")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_workload_is_named_or_counted_from_0(desk: Desk) -> None:
    assert desk.ask(workload="A.open", rate=50) == "A.open: 50 arrivals/s from 20.5 s on"
    assert desk.ask("load-2", workload="1", users=7) == "B.closed: 7 virtual users from 20.0 s on"
    assert [record["workload"] for record in desk.journal] == [0, 1]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"rate": 5}, "several workloads are under load; give --workload, one of 0 (A.open), 1 (B"),
        ({"workload": "B.closed", "users": 1}, "several workloads are under load"),
        ({"workload": "9", "users": 1}, "workload 9 is not under load now; choose from 0 (A.open)"),
        ({"workload": "0", "users": 1}, "A.open starts iterations at a rate; give --rate"),
        ({"workload": "1", "rate": 1}, "B.closed has virtual users"),
        (
            {"workload": "1", "users": 17},
            "--users 17 is more than the workers of B.closed carry; give at most 16",
        ),
        ({"workload": "0", "rate": 1e-12}, "--rate must be 0 or between 1e-09 and 1e+09"),
        ({"workload": "0", "rate": "fast"}, "give --rate"),
        # not JSON: an empty command
        ({"workload": "0", "rate": float("nan")}, "give --workload"),
        ({"workload": "0", "rate": -5}, "give --rate"),
        ({"workload": "0", "resume_load": True}, "the load of A.open is as planned"),
        ({"workload": "0"}, "give --rate"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_journalled(
    desk: Desk, asked: dict[str, Any], why: str
) -> None:
    assert desk.ask(**asked).startswith("no: ")
    assert why in desk.ask("load-2", **asked)
    assert desk.journal == []


@pytest.mark.parametrize("asked", [{"rate": 5}, {"users": 5}, {"pause": True}, {"resume_load": 1}])
def test_a_search_decides_on_its_rate_itself(desk: Desk, asked: dict[str, Any]) -> None:
    desk.runs = [desk._run(3, "A.sought", Search({"low": 1, "high": 9}))]

    assert "load of A.sought cannot be changed, as its search decides" in desk.ask(**asked)
    assert desk.journal == []


def test_without_load_nothing_is_changed(desk: Desk) -> None:
    for run in desk.runs:
        run.under_load = False

    assert desk.ask(rate=5) == "no: no workload is under load now: try again while one is"


def test_a_request_that_the_journal_knows_is_not_followed_twice(desk: Desk) -> None:
    first = desk.ask(workload="0", rate=50)

    assert desk.ask(workload="0", rate=50) == first
    assert len(desk.journal) == 1


def test_a_pause_ends_with_the_plan(desk: Desk) -> None:
    desk.ask("load-1", workload="1", pause=True)
    desk.ask("load-2", workload="1", resume_load=True)

    assert [record["level"] for record in desk.journal] == [0, None]
    assert desk.journal[1]["asked"] == [[20.0, 4.0]]


@pytest.mark.parametrize("asked", [{"users": 4}, {"pause": True}, {"resume_load": True}])
def test_the_code_of_a_runner_decides_on_its_load_itself(desk, asked):
    desk.runs = [desk._run(3, "C.own", ScriptedRunner({}))]

    assert "its runner starts the iterations itself; end it with" in desk.ask(**asked)
    assert not desk.journal
