"""Workloads whose scenarios are made on the spot, as workers prepare them."""

from __future__ import annotations

import inspect
import threading
from typing import Any

from helpers.engines import body
from osbench.common.protocol.messages import Specification
from osbench.worker.session.preparation import Prepared
from osbench.worker.tracing.span_buffer import SpanBuffer
from servers.child import PATIENCE_S


def specified(workload: int, scenario: str, **more: Any) -> Specification:
    """The specification of a closed workload of run "r", but for `more`."""
    values = {
        "run": "r",
        "workload": workload,
        "scenario": scenario,
        "args": {},
        "timeout_s": 0.0,
        "open": False,
        "max_concurrency": 0,
        "users_each": 0,
        "max_lag_s": 1.0,
        "context": {},
        "deployment": {},
        "source_hash": "",
        "sample_rate": 0.0,
        "ship_interval_s": 0.05,
    }
    return Specification(**{**values, **more})


class Preparing:
    """Prepares scenarios made on the spot, by name."""

    def __init__(self, **works: Any) -> None:
        self.works = works
        self.gates: dict[str, threading.Event] = {}
        self.spans = SpanBuffer(0)

    def prepare(self, specification: Specification, _: object = None) -> Prepared:
        gate = self.gates.get(specification.scenario)
        if gate is not None:
            gate.wait(PATIENCE_S)
        work = self.works[specification.scenario]
        if isinstance(work, BaseException):
            raise work
        coroutines = inspect.iscoroutinefunction(work)
        return Prepared(
            specification=specification,
            body=body(work, timeout_s=specification.timeout_s, is_coroutine=coroutines),
            coroutines=coroutines,
        )

    def span_counts(self) -> list[int]:
        return [0, 0, 0]
