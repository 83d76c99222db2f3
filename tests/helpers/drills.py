"""Drills of tests: hooks, phases of iterations, and runs that can be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from helpers.runs import Site


def at(unit: str, value: int) -> dict[str, Any]:
    """A trigger that fires once."""
    return {"event": {"unit": unit, "at": [value]}}


def hook(name: str, command: str, trigger: dict[str, Any]) -> dict[str, Any]:
    """A hook that runs a command."""
    return {"description": name, "action": {"sys_call": command}, "trigger": trigger}


def phase_of(row: Mapping[str, str], drill: Mapping[str, Any]) -> str:
    """The phase of an iteration as `results --csv` has it."""
    if float(row["started_s"]) + float(row["service_s"]) < drill["fault_s"]:
        return "before"
    return "after" if float(row["due_s"]) >= drill["after_s"] else "fault"


def resumable(here: Site) -> set[str]:
    """Ids of the runs that can be resumed."""
    listed = json.loads(here.coord("runs", "list", "--json").out)
    return {one["run"] for one in listed if one["state"] == "resumable"}
