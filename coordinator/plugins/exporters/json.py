"""Exporter `json`: the JSON object of the run as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import exporter


class Json(exporter.Exporter):
    """Writes results.json: the JSON object that `results RUN --json` prints.

    Of a run that could not start it is the object of its error.
    """

    NAME: ClassVar[str] = "json"
    FILE: ClassVar[str] = "results.json"
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

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write the run's report as a JSON object to `path`, which is replaced."""
        self._write(run.summary, path)

    def export_failure(self, failure: Mapping[str, Any], path: Path) -> bool:
        """Write error and exit code of a run that could not start to `path`; return True."""
        self._write({name: failure[name] for name in ("error", "exit_code")}, path)
        return True

    def _write(self, found: Mapping[str, Any], path: Path) -> None:
        indent = self.config.get("indent", 1) or None
        path.write_text(json.dumps(found, indent=indent, allow_nan=False) + "\n", "utf-8")
