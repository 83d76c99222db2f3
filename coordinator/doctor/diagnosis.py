"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARNING, ERROR = "ok", "warning", "error"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One line of the table."""

    #: What was looked at: "Redis", "keys".
    about: str
    #: "ok", "warning" or "error".
    state: str
    detail: str
    #: What to do; "" where there is nothing.
    remedy: str = ""
