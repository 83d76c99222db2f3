"""Workers of local mode that do not come: what they warned of is told with the error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.config.config import load
from osbench.common.errors import FleetError, StoreError
from osbench.coordinator.load.local.local_mode import LocalMode

WARNED = "the last lines of its log:\n  2026 7 WARNING plug-in file a.py:2: its import takes longer"


@pytest.mark.parametrize(
    ("log", "exit_reason", "error", "told"),
    [
        (WARNED, None, FleetError("none came"), f"none came; {WARNED}"),
        ("the last lines of its log:\n  started", None, FleetError("none came"), "none came"),
        ("its log is empty", None, FleetError("none came"), "none came"),
        # told by `check` already
        (WARNED, "ended with exit code 1", FleetError("it ended"), "it ended"),
        (WARNED, None, StoreError("other"), "other"),
    ],
)
def test_what_workers_warned_of_is_told(
    log: str, exit_reason: str | None, error: Exception, told: str
) -> None:
    local = LocalMode(load([]), 1, 1)
    workers: Any = SimpleNamespace(exit_reason=lambda: exit_reason, log_end=lambda: log)
    local._workers = workers

    assert str(local.explained(error)) == told
