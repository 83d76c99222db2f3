"""The Grafana dashboard of deploy/grafana."""

from __future__ import annotations

import json
from typing import Any

from helpers.readme import REPOSITORY

DASHBOARD: dict[str, Any] = json.loads(
    (REPOSITORY / "deploy" / "grafana" / "osbench.json").read_text("utf-8")
)


def panels() -> list[dict[str, Any]]:
    return list(DASHBOARD["panels"])
