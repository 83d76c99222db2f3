"""The summary of a run: read as it is, or refused with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.common.deployment.record import Deployment
from osbench.common.errors import OsbenchError, UsageError
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import HookConfig, Named, Subtask, Task, Workload
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import SUMMARY, describe, summary_of
from osbench.coordinator.results.storage.run_listing import run_row


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "run")
    yield found
    found.close()


def damaged() -> dict[str, Any]:
    whole = to_json(full_report())
    (first, *rest) = whole["workloads"]
    return {
        "no exit code": {key: whole[key] for key in whole if key != "exit_code"},
        "no list of workloads": whole | {"workloads": 5},
        "a workload without sums": whole | {"workloads": [{"name": "x"}]},
        "a workload that is none": whole | {"workloads": [first, *rest, "x"]},
    }


def test_a_whole_summary(directory: RunDirectory) -> None:
    assert summary_of(directory) is None
    directory.write(SUMMARY, to_json(full_report()))
    found = summary_of(directory)
    assert found is not None
    assert found["exit_code"] == full_report().exit_code


@pytest.mark.parametrize("what", damaged())
def test_a_damaged_summary_is_named_and_does_not_hide_other_runs(
    directory: RunDirectory, what: str
) -> None:
    directory.write(SUMMARY, damaged()[what])
    with pytest.raises(OsbenchError, match=r"summary\.json is damaged"):
        summary_of(directory)
    directory.close()
    assert "is damaged" in run_row(directory)["why"]


def test_a_lock_that_cannot_be_opened_does_not_hide_other_runs(directory: RunDirectory) -> None:
    directory.close()
    (directory.path / "lock").unlink(missing_ok=True)
    (directory.path / "lock").mkdir()

    row = run_row(directory)

    assert row["state"] == "damaged"
    assert "lock" in row["why"]


def test_a_summary_of_another_version(directory: RunDirectory) -> None:
    directory.write(SUMMARY, to_json(full_report()) | {"format": 7})
    with pytest.raises(UsageError, match="has format 7, and this osbench reads 1"):
        summary_of(directory)


@pytest.mark.parametrize(
    ("record", "store"),
    [
        ({"profiler_hmac_key": "k", "profiler_conn_str": "redis://:pw@h:6"}, "redis://h:6"),
        ({"profiler_hmac_key": "k"}, ""),
        # without a key nothing is traced
        ({"profiler_conn_str": "redis://h:6"}, ""),
    ],
)
def test_the_trace_store_of_a_run_is_kept_without_its_password(
    record: dict[str, Any], store: str
) -> None:
    task = Task(title="a", subtasks=())
    deployment = Deployment.from_spec(
        "lab", {"osbench": {"services": {"shop": "http://h"}, **record}}
    )

    found = describe("run", 0.0, task, [], Plugins(), deployment)

    assert found["trace_store"] == store
    assert describe("run", 0.0, task, [], Plugins(), None)["trace_store"] == ""


def test_the_request_for_a_run_has_all_that_shapes_its_load_and_no_secret() -> None:
    workload = Workload(
        place="w",
        position=0,
        scenario="Dummy.dummy",
        args={},
        runner=Named(name="poisson", config={"rps": 5}),
        users={"file": "users.csv"},
        think={"min": 1, "max": 2},
        http={"base": "http://a", "headers": {"Authorization": "Bearer abc123"}},
        contexts=(Named(name="users", config={"tenants": 2}),),
        hooks=(
            HookConfig(
                description="outage",
                action=Named(name="shell", config="stop --password hunter22"),
                trigger=Named(name="event", config={"unit": "time", "at": [30]}),
            ),
        ),
        phases={"fault": "outage"},
    )
    task = Task(title="a", subtasks=(Subtask(title="a", workloads=(workload,)),))

    (found,) = describe("run", 0.0, task, [], Plugins(), None)["workloads"]

    assert found["users"] == {"file": "users.csv"}
    assert found["think"] == {"min": 1, "max": 2}
    assert found["contexts"] == {"users": {"tenants": 2}}
    assert found["hooks"] == [
        {
            "description": "outage",
            "action": {"shell": "stop --password ***"},
            "trigger": {"event": {"unit": "time", "at": [30]}},
        }
    ]
    assert found["phases"] == {"fault": "outage"}
    assert found["http"]["base"] == "http://a"
    assert "abc123" not in str(found)
