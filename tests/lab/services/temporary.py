"""A lab that exists as long as its user."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from servers import folder
from services import operations
from services.lab import Lab

# Reads until the user of the lab has ended, even by a signal, then stops the lab and removes it.
LEASH = 'cat >/dev/null; "$1" -m services stop --dir "$2"; rm -rf -- "$2"'


@contextlib.contextmanager
def temporary_lab() -> Iterator[Lab]:
    """A lab in a temporary folder; it never outlives this process."""
    with folder() as path, leash(path):
        lab = Lab(path)
        try:
            yield lab
        finally:
            operations.stop(lab)


@contextlib.contextmanager
def leash(path: Path) -> Iterator[None]:
    """Have the lab in a folder stopped even where this process is killed."""
    here = Path(__file__).parents[1]
    process = subprocess.Popen(
        ["/bin/sh", "-c", LEASH, "leash", sys.executable, str(path)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{here}:{here.parent}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.kill()
        process.communicate()
