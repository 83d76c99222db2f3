"""The result of a check of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARNING, ERROR = "ok", "warning", "error"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A line of the table of `doctor`: a check, its state, its finding, and advice."""

    #: What was looked at: "Redis", "keys".
    about: str
    #: "ok", "warning" or "error".
    state: str
    detail: str
    #: Advice; "" if nothing is to be done.
    remedy: str = ""
