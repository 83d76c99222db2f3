"""How many worker processes the supervisors of a data directory keep running."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench.common.errors import ConfigError
from osbench.common.private_files import make_private_directory


def _directory(conf: cfg.ConfigOpts) -> Path:
    return Path(conf.data_dir) / "supervisors"


@contextlib.contextmanager
def supervisor_recorded(conf: cfg.ConfigOpts, processes: int) -> Iterator[None]:
    """Within it the record of this supervisor is locked, which shows that it lives.

    Raises ConfigError where the data directory cannot be written.
    """
    directory = _directory(conf)
    path = directory / f"{socket.gethostname()}.{os.getpid()}"
    try:
        make_private_directory(directory)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"[DEFAULT] data_dir: {path}: {error.strerror}") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"label": conf.worker.label, "processes": processes}, file)
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def recorded_processes(conf: cfg.ConfigOpts) -> int:
    """Worker processes of all living supervisors; with `[worker] label`, of those with that label.

    Records of the dead are removed.
    """
    count = 0
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(_directory(conf).iterdir()):
            record = _living(path)
            if record and conf.worker.label in ("", record["label"]):
                count += int(record["processes"])
    return count


def _living(path: Path) -> dict[str, Any] | None:
    """A record whose supervisor lives."""
    # one that is being written counts with the next look
    with contextlib.suppress(FileNotFoundError, ValueError), path.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return dict(json.load(file))
        path.unlink(missing_ok=True)
    return None
