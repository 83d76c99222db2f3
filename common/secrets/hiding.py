"""Values that a scenario hides from logs, beside those that names and forms tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar

from osbench.common.secrets.secret_names import MASK

#: Returns the values that a text of the current task or thread must not show.
Hidden = Callable[[str], Iterable[str]]

HIDDEN: ContextVar[Hidden | None] = ContextVar("osbench_hidden", default=None)


def hide(text: str) -> str:
    """A text without the values that the current task or thread hides."""
    hidden = HIDDEN.get()
    if hidden is None:
        return text
    # longer ones first: one may be part of another
    for value in sorted(hidden(text), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
