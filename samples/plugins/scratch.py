"""A context: a folder for the time of the load."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import context


class Scratch(context.Context):
    """Makes a folder, which all workers must be able to reach, and removes it with its files."""

    NAME: ClassVar[str] = "scratch"
    ORDER: ClassVar[int] = 500
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "parent": {
                "type": "string",
                "minLength": 1,
                "description": "folder to make it in; that for temporary files by default",
            }
        },
        "examples": [{"parent": "/mnt/shared"}],
        "additionalProperties": False,
    }

    def setup(self) -> None:
        """Make the folder."""
        parent = self.config.get("parent", tempfile.gettempdir())
        folder = Path(parent, f"osbench-{self.surroundings.run}-{os.urandom(4).hex()}")
        # its name is stored first: if this process dies before mkdir, it can still be removed
        self.made["scratch"] = str(folder)
        self.keep()
        folder.mkdir(mode=0o700)

    def cleanup(self) -> None:
        """Remove the folder; it may be gone, or never have been made."""
        folder = self.made.get("scratch")
        if folder and Path(folder).exists():
            shutil.rmtree(folder)
