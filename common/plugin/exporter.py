"""The exporter interface: the results of a finished run in another format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Exporter:
    """Base of exporters. One instance per export; the command line writes what it returns."""

    #: Name on the command line.
    NAME: ClassVar[str] = ""
    #: JSON schema of the options.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object", "additionalProperties": False}

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    def export(self, summary: Mapping[str, Any]) -> Mapping[str, str | bytes]:
        """File names, without a folder, with their contents; text is written as UTF-8.

        `summary` is the JSON object of the run (docs/results.schema.json).
        """
        raise NotImplementedError
