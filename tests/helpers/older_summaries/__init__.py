"""Summaries as older releases wrote them; `summary.json` of a run stays readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent

#: What wrote them: a release, or the day of an unreleased version.
NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def older_summary(name: str) -> dict[str, Any]:
    """The summary of a run of one workload."""
    found: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return found
