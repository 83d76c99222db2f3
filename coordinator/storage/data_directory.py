"""Whether runs can be kept in the data directory."""

from __future__ import annotations

import os
from pathlib import Path

from osbench.common.errors import ConfigError


def check_writable(data_dir: str) -> None:
    """Raise ConfigError where no run can be kept below the data directory, with the reason."""
    path = Path(data_dir)
    nearest = next(one for one in (path, *path.parents) if os.path.lexists(one))
    if not nearest.is_dir():
        why = f"{nearest} is no directory"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        why = f"this user may not write to {nearest}"
    else:
        return
    raise ConfigError(
        f"[DEFAULT] data_dir: no run can be kept in {path}: {why}. Name another directory in "
        "osbench.conf, or have its owner changed"
    )
