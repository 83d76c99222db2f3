"""Finds values in HTML pages and scripts of a recording, and how a flow can find them again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from osbench.common.text.pages.form_inputs import FormInput, form_inputs
from osbench.common.text.pages.page_patterns import (
    BadPattern,
    SearchedTooLong,
    check_pattern,
    found_by,
)

#: Inputs, and other values, of a page that are looked at.
_MOST = 5000
#: Random values, such as values that are used once.
_RANDOM = re.compile(r"[\w~+.-]{16,400}={0,2}")
_QUOTED = re.compile(r"""["']([\w~=+./:-]{16,4000})["']""")
_LEAST_RANDOM = 16
_DATE = re.compile(r"\d{4}-\d\d-\d\d\b")
#: Characters at which a text before a value begins, and how many such texts are tried.
_EDGES = re.compile(r"[\n{;,<>]")
_TRIED = 4
_BEFORE_CHARS = 160
#: Places of a value on a page that are tried.
_PLACES = 10


def is_random(text: str) -> bool:
    """Return whether a text looks random, like a token, and not like a word, a path or a date.

    Such texts have at least 16 characters, letters and digits.
    """
    return (
        len(text) >= _LEAST_RANDOM
        and re.search(r"\d", text) is not None
        and re.search(r"[A-Za-z]", text) is not None
        and (text.count("/") < 2 or re.search(r"[+=]", text) is not None)
        and not _DATE.match(text)
    )


def page_inputs(page: str) -> Iterator[tuple[FormInput, str]]:
    """Yield each input of a page that has a value, with its source for a step's `save`.

    The source is `input NAME`, or `input NAME of form FORM` if the name alone finds another input.
    Inputs that neither finds are left out. Looks at the first `_MOST` inputs.
    """
    inputs = list(itertools.islice(form_inputs(page), _MOST))
    #: The values that a flow finds, by name and form.
    first: dict[tuple[str, str], str] = {}
    for one in inputs:
        for form in ("", *one.form):
            first.setdefault((one.name, form), one.value)
    for one in inputs:
        if one.value and _is_plain(one.name) and " of form " not in one.name:
            forms = [f for f in ("", *one.form) if not f or _is_plain(f)]
            found = next((f for f in forms if first[one.name, f] == one.value), None)
            if found is not None:
                yield one, f"input {one.name}" + (f" of form {found}" if found else "")


def _is_plain(name: str) -> bool:
    return name.isprintable() and name == name.strip()


def random_values(page: str) -> set[str]:
    """Return words and quoted strings of a page that look random, as tokens; at most `_MOST`."""
    found: set[str] = set()
    for pattern in (_RANDOM, _QUOTED):
        for match in pattern.finditer(page):
            value = match[match.re.groups]
            if is_random(value):
                found.add(value)
            if len(found) >= _MOST:
                return found
    return found


def pattern_source(page: str, value: str) -> str | None:
    """Return a source `regex PATTERN` for a step's `save` that finds `value` on `page`.

    The pattern consists of text before the value and a group for it. None if no such pattern finds
    it, or the page does not contain it.
    """
    at = -1
    for _ in range(_PLACES):
        at = page.find(value, at + 1)
        if at < 0:
            return None
        for before in _befores(page, at):
            pattern = _escaped_pattern(before) + _group(page[at + len(value) : at + len(value) + 1])
            try:
                check_pattern(pattern)
                if found_by(pattern, page) == value:
                    return f"regex {pattern}"
            except (BadPattern, SearchedTooLong):
                continue
    return None


def _befores(page: str, at: int) -> Iterator[str]:
    """Yield up to `_TRIED` pieces of `page` that end at index `at`, shortest first.

    Pieces with random values are left out: they would be different in the next run.
    """
    start = max(0, at - _BEFORE_CHARS)
    before = page[start:at]
    edges = [found.start() for found in _EDGES.finditer(before)]
    tried = 0
    for edge in reversed(edges):
        text = before[edge if before[edge] == "<" else edge + 1 :].lstrip()
        # what is made up for one use is another text next time
        if len(text) < 4 or _has_random(text):
            continue
        yield text
        tried += 1
        if tried == _TRIED:
            return
    if start == 0 and len(before) >= 4 and not _has_random(before):
        yield before


def _has_random(text: str) -> bool:
    return any(is_random(found[0]) for found in _RANDOM.finditer(text))


def _escaped_pattern(text: str) -> str:
    return r"\s+".join(re.escape(piece) for piece in re.split(r"\s+", text))


def _group(after: str) -> str:
    """Return a regular expression's group for a value that is followed by the character `after`.

    `after` is "" at the end of the page.
    """
    if after and not re.fullmatch(r"[\w~=+.-]", after):
        return rf"([^\s{re.escape(after)}]+)" if after.strip() else r"(\S+)"
    return r"([\w~=+.-]+)"
