"""The configuration file of private workers: our options, with the private server and keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench.common.config.options import OPTIONS

#: Values that replace the effective ones, by group and option.
Changes = Mapping[tuple[str, str], Any]


def write_config(path: Path, conf: cfg.ConfigOpts, changes: Changes) -> None:
    """Write every option of `conf`, replaced by `changes`, to a new file of mode 0600.

    Raises OSError, also if the file exists.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(_lines(conf, changes)) + "\n")


def _lines(conf: cfg.ConfigOpts, changes: Changes) -> list[str]:
    lines = []
    for group, options in OPTIONS.items():
        lines.append(f"[{group}]")
        values = conf if group == "DEFAULT" else conf[group]
        for option in options:
            value = changes.get((group, option.dest), values[option.dest])
            if value is not None:
                lines.append(f"{option.dest} = {_option_text(value)}")
    return lines


def _option_text(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text.replace("$", "$$")


def worker_environment() -> dict[str, str]:
    """Return our environment without variables that set options: they would override the file."""
    names = {
        f"OS_{group.upper()}__{option.dest.upper()}"
        for group in OPTIONS
        for option in OPTIONS[group]
    }
    return {name: value for name, value in os.environ.items() if name not in names}
