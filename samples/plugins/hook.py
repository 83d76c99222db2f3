"""A hook: takes a file away and gives it back, such as the flag that a balancer looks at."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import hook


class Withdraw(hook.Hook):
    """Renames `file` for some seconds, so that a balancer takes its host out of service."""

    NAME: ClassVar[str] = "withdraw"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "file": {"type": "string", "minLength": 1},
            "seconds": {"type": "number", "exclusiveMinimum": 0},
        },
        "required": ["file", "seconds"],
        "examples": [{"file": "/var/www/alive", "seconds": 10}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._over = threading.Event()

    def run(self, event: hook.Event) -> Mapping[str, Any]:
        """Take the file away, wait, and put it back, also when the run ends early."""
        file = Path(self.config["file"])
        aside = file.with_name(f"{file.name}.withdrawn")
        file.rename(aside)
        try:
            early = self._over.wait(self.config["seconds"])
        finally:
            aside.rename(file)
        text = (
            f"{file} was unreachable at {event.unit} {event.value}{', cut short' if early else ''}"
        )
        chart = {"title": "Withdrawn", "chart_plugin": "TextArea", "data": [text]}
        return {"complete": [chart]}

    def stop(self) -> None:
        """Put the file back at once."""
        self._over.set()
