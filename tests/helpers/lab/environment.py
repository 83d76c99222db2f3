"""An OpenStack service's own virtual environment, for a test."""

from __future__ import annotations

from pathlib import Path

from servers import missing
from services import environments
from services.faults import Unavailable


def environment(name: str, requirements: Path) -> Path:
    """The folder of an environment with these pins, created if it does not exist.

    Skips the test where the packages cannot be had, which in CI is a failure.
    """
    try:
        return environments.environment(name, requirements)
    except Unavailable as fault:
        missing(str(fault))
