"""Exporter `json`: the JSON object of the run as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import exporter


class Json(exporter.Exporter):
    """Writes results.json: the JSON object that `results RUN --json` prints."""

    NAME: ClassVar[str] = "json"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "indent": {
                "type": "integer",
                "minimum": 0,
                "maximum": 8,
                "default": 1,
                "description": "blanks per level; 0 writes one line",
            }
        },
        "additionalProperties": False,
    }

    def export(self, summary: Mapping[str, Any]) -> Mapping[str, str]:
        """results.json."""
        indent = self.config.get("indent", 1) or None
        return {"results.json": json.dumps(summary, indent=indent, allow_nan=False) + "\n"}
