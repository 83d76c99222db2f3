"""Hides values that a scenario names, in addition to secrets known by name or form."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from urllib.parse import quote_plus

from osbench.common.secrets.secret_names import MASK

#: Returns the values that a text of the current task or thread must not show.
Hidden = Callable[[str], Iterable[str]]

HIDDEN: ContextVar[Hidden | None] = ContextVar("osbench_hidden", default=None)


def without(hidden: Iterable[str], text: str) -> str:
    """Return `text` with `***` for each value in `hidden`, also in its JSON, HTML or URL form.

    Empty values are ignored.
    """
    # longer ones first: one may be part of another
    for value in sorted(filter(None, hidden), key=len, reverse=True):
        for form in {value, json.dumps(value)[1:-1], html.escape(value), quote_plus(value)}:
            text = text.replace(form, MASK)
    return text


def hide(text: str) -> str:
    """Return `text` with `***` instead of the values that HIDDEN gives for this task or thread.

    Unchanged if HIDDEN is not set.
    """
    hidden = HIDDEN.get()
    return text if hidden is None else without(hidden(text), text)
