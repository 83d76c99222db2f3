"""What a judge has found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """An invariant that does not hold."""

    #: A few words, the same for all findings of a kind.
    kind: str
    detail: str = ""
