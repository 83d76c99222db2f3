"""Refuses plug-ins that replace Python's threads and sockets, as gevent and eventlet can."""

from __future__ import annotations

import importlib
import sys
from typing import Any

#: Importing it comes before its patches.
GEVENT = "gevent.monkey"


class PatchRefused(ImportError):
    """Raised if a plug-in patches modules of Python that this process needs unpatched."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"monkey patches of {package} are refused: threads and event loops of osbench would"
            " hang; for many virtual users write scenarios as `async def`"
        )


def watch_gevent() -> None:
    """Import gevent.events and make gevent raise PatchRefused to code that is to patch.

    A second call does nothing.
    """
    subscribers = importlib.import_module("gevent.events").subscribers
    if _refuse not in subscribers:
        subscribers.append(_refuse)


def refuse_eventlet() -> None:
    """Raise PatchRefused if eventlet has patched this process."""
    patcher: Any = sys.modules.get("eventlet.patcher")
    if getattr(patcher, "already_patched", None):
        raise PatchRefused("eventlet")


def _refuse(event: Any) -> None:
    if type(event).__name__.startswith("GeventWillPatch"):
        raise PatchRefused("gevent")
