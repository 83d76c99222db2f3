"""Webhooks of Alertmanager for runs that failed, and for runs that became worse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.recording_server import RecordingServer, recording_server
from helpers.result_rows import row
from helpers.stored_runs import RUN, stored_run
from osbench.common.errors import ExportError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.report.stored_run import StoredRun
from osbench.edges.history.exporters.alert import alert_document

ROWS = [row(at, due=100 * at, started=100 * at, ended=100 * at + 20) for at in (1, 2)]


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as found:
        yield found


def sent(server: RecordingServer, run: StoredRun, **summary: Any) -> dict[str, Any]:
    """The webhook of a run."""
    run.summary.update(summary)
    exporter: Any = Plugins().get("exporter", "alert")({"pause_s": 0})
    exporter.send(run, f"{server.url}/hook")
    (taken,) = server.taken()
    assert taken.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(taken.body)
    return found


def test_a_run_that_failed_fires(server: RecordingServer, tmp_path: Path) -> None:
    missed = Verdict(criterion="throughput", success=False, detail="3/s, at least 5/s")
    run = stored_run(tmp_path, ROWS, verdicts=(missed,))

    found = sent(server, run, exit_code=1, exit_meaning="an SLA failed")

    (alert,) = found["alerts"]
    assert (found["version"], found["status"], alert["status"]) == ("4", "firing", "firing")
    assert alert["labels"]["alertname"] == "OsbenchRunFailed"
    assert (alert["labels"]["exit_code"], alert["labels"]["run"]) == ("1", RUN)
    assert alert["annotations"]["summary"].endswith(": an SLA failed")
    assert "throughput: 3/s, at least 5/s" in alert["annotations"]["description"]
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"


def test_a_run_that_is_well_resolves_the_same_group(
    server: RecordingServer, tmp_path: Path
) -> None:
    run = stored_run(tmp_path, ROWS)

    failed = sent(server, run, exit_code=3)
    well = sent(server, run, exit_code=0)

    assert well["status"] == well["alerts"][0]["status"] == "resolved"
    assert well["alerts"][0]["endsAt"] == run.summary["finished_at"]
    assert well["groupKey"] == failed["groupKey"]


def test_secrets_do_not_reach_the_receiver() -> None:
    document = alert_document(
        "A",
        labels={"task": "t\x1b[2J"},
        summary="",
        details=["cannot reach redis://:hunter2@h", "token=hunter2"],
        started_at="2026-04-01T12:00:00Z",
        ended_at=None,
    )

    assert "hunter2" not in json.dumps(document)
    assert "\x1b" not in document["alerts"][0]["labels"]["task"]


def test_a_receiver_that_refuses_is_said(tmp_path: Path) -> None:
    exporter: Any = Plugins().get("exporter", "alert")({"pause_s": 0})

    with pytest.raises(ExportError, match=r"http://127\.0\.0\.1:9/"):
        exporter.send(stored_run(tmp_path, ROWS), "http://127.0.0.1:9/")
