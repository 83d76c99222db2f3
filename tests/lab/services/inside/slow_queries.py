"""Makes some statements of a service's database slow."""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy
from injected_faults import InjectedFaults


def install(file: str, service: str) -> None:
    """Have each statement of every engine of this process ask the file whether it is slow."""
    faults = InjectedFaults(file, service)

    # instead of the cursor's own execute: within what OSProfiler measures
    @sqlalchemy.event.listens_for(sqlalchemy.Engine, "do_execute")
    def slow(cursor: object, statement: str, *rest: Any) -> None:
        delay_s = faults.delay_s(statement)
        if delay_s:
            time.sleep(delay_s)
