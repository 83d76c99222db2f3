"""Texts that the word list does not apply to, each with a reason."""

from __future__ import annotations

from typing import NamedTuple


class Allowed(NamedTuple):
    """A text is excepted if its file's path ends with `path` and it contains `words`."""

    path: str
    words: str
    reason: str


EXCEPTIONS: tuple[Allowed, ...] = (
    Allowed("traces/trace_command.py", "jq -r .sentence", "a key of the JSON object"),
    Allowed("worker/http/wire/__init__.py", "parser.answer(request, phases)", "a name of the API"),
)
