"""What all tests of workers share."""

from __future__ import annotations

import pytest

from osbench.worker.session import workloads


@pytest.fixture(autouse=True)
def small_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave objects of other tests alone: to traverse them takes a quarter of a second."""
    monkeypatch.setattr(workloads, "_exempt_from_garbage_collection", lambda **_: None)
