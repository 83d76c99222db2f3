"""Finds the inputs of forms in an HTML page, however malformed it is, in linear time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Characters of a page that are looked at, and of one tag.
PAGE_CHARS = 2 * 1024 * 1024
_TAG_CHARS = 64 * 1024

#: The beginning of a tag or comment that matters. No pattern here backtracks.
_BEGIN = re.compile(r"(?i)<(?:!--|(/form|form|input|script|style|template|title)(?=[\s/>]))")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+([^\s=>"'/][^\s=>/]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']*+)))?+"""
)
_SPACE = re.compile(r"[\s/]*+")
#: Elements whose content is text.
_TEXTS = frozenset({"script", "style", "title"})


@dataclass(frozen=True, kw_only=True)
class FormInput:
    """An input of an HTML page that has a name, with its value and its form."""

    name: str
    value: str
    #: Of its form: its id, its name and its action, as far as it has them.
    form: tuple[str, ...]
    #: A kind of input, such as hidden, in lower case; "text" if the page does not say it.
    kind: str


def form_inputs(page: str) -> Iterator[FormInput]:
    """Yield the elements `input` of an HTML page that have a name, in order.

    Inputs in comments, scripts, styles and titles are left out. Only the first PAGE_CHARS
    characters are read.
    """
    page = page[:PAGE_CHARS]
    form: tuple[str, ...] = ()
    at = 0
    while found := _BEGIN.search(page, at):
        at, element = found.end(), (found[1] or "").lower()
        if not element:
            at = _behind(page, "-->", at)
        elif element == "/form":
            form = ()
        else:
            attributes, at = _attributes(page, at)
            if element == "form":
                names = (attributes.get(key, "") for key in ("id", "name", "action"))
                form = tuple(name for name in names if name)
            elif element in _TEXTS:
                at = _behind(page, f"</{element}", at)
            elif element == "input" and attributes.get("name"):
                of = (attributes["form"],) if attributes.get("form") else form
                yield FormInput(
                    name=attributes["name"],
                    value=attributes.get("value", ""),
                    form=of,
                    kind=attributes.get("type", "text").lower(),
                )


def input_value(page: str, name: str, form: str = "") -> str | None:
    """Return the value of the first input called `name`, "" if it has none; None without the input.

    `form`, unless "", is the id, name or action of the form that it must be in.
    """
    for one in form_inputs(page):
        if one.name == name and (not form or form in one.form):
            return one.value
    return None


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """Return a tag's attributes from index `at` on, by name in lower case, and the index behind it.

    {} if the tag does not end within _TAG_CHARS. Values are unescaped; of equal names the first
    counts.
    """
    found: dict[str, str] = {}
    end = min(len(page), at + _TAG_CHARS)
    while True:
        while one := _ATTRIBUTE.match(page, at, end):
            name, value = one[1].lower(), next((v for v in one.groups()[1:] if v is not None), "")
            # of several of one name the first counts, as in browsers
            found.setdefault(name, html.unescape(value))
            at = one.end()
        at = _SPACE.match(page, at).end()  # type: ignore[union-attr] # it matches ""
        if at >= end:
            # a tag without an end is none
            return {}, at
        at += 1
        if page[at - 1] == ">":
            return found, at


def _behind(page: str, mark: str, at: int) -> int:
    found = re.compile(re.escape(mark), re.IGNORECASE).search(page, at)
    return found.end() if found else len(page)
