"""Parts of a response that a step of a flow saves, by the expressions that name them.

`$...` is a JSONPath, `header NAME` a header, `cookie NAME` a cookie of the virtual user, `input
NAME` (`of form FORM`) an input of a form of the page, and `regex PATTERN` a part of the text.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from osbench.common.plugin.request_values import is_token
from osbench.common.plugin.scenario import Scenario, VirtualUser
from osbench.common.secrets.secret_names import is_secret
from osbench.common.text.pages.form_inputs import input_value
from osbench.common.text.pages.page_patterns import (
    BadPattern,
    SearchedTooLong,
    check_pattern,
    found_by,
)
from osbench.worker.http import jsonpath
from osbench.worker.http.user.http_response import HttpResponse

#: Begins a part that is not a JSONPath.
_WORD = re.compile(r"(?is)(header|cookie|input|regex)\s+(\S.*)")
_OF_FORM = re.compile(r"(?s)(.*\S)\s+of\s+form\s+(\S.*)")
#: Shorter values are not secrets, and would hide parts of other words.
_LEAST_HIDDEN = 6
#: Headers that are not secrets, whatever they hold.
_OPEN_HEADERS = frozenset({"location", "etag"})


class NothingToSave(ValueError):
    """Error of a response that lacks the part that a step is to save."""


def part_fault(source: str) -> str:
    """Return the problem of an expression that names a part, such as "header ETag"; "" if valid."""
    kind, name = _kind_of(source)
    if kind == "$":
        try:
            jsonpath.compiled_query(name)
        except jsonpath.BadPath as error:
            return str(error)
    elif kind in ("header", "cookie"):
        if not is_token(name):
            return f"{source!r} names no {kind}: {name!r} is not the name of one"
    elif kind == "regex":
        try:
            check_pattern(name)
        except BadPattern as error:
            return str(error)
    elif not kind:
        return (
            f"{source!r} is neither a JSONPath ($...), nor header NAME, cookie NAME, input NAME or"
            " regex PATTERN"
        )
    return ""


def is_of_body(source: str) -> bool:
    """Return whether the part that `source` names is in the body: not a header or a cookie.

    True for an invalid expression.
    """
    return _kind_of(source)[0] not in ("header", "cookie")


def is_hidden(name: str, source: str) -> bool:
    """Return whether a part saved as `name` has to be hidden in messages, as it may be a secret.

    True for cookies, inputs and regular expressions, for headers except Location and ETag, and if
    `name` or `source` is the name of a secret.
    """
    kind, of = _kind_of(source)
    if kind == "header":
        return of.lower() not in _OPEN_HEADERS
    return kind in ("cookie", "input", "regex") or is_secret(name) or is_secret(of)


def hidden_in(text: str, user: VirtualUser, saves: Mapping[str, str]) -> set[str]:
    """Return the strings to hide in `text`, the body or header of a response in a message.

    These are all hidden values that `user` has saved, and the values of hidden parts of `saves`
    (expressions by name) that `text` has, if they are at least `_LEAST_HIDDEN` characters long.
    """
    found = set(user.hidden.values())
    for name, source in saves.items():
        kind, of = _kind_of(source)
        if not is_hidden(name, source):
            continue
        with contextlib.suppress(SearchedTooLong):
            if kind == "input":
                value = _input(of, text)
            elif kind == "regex":
                value = found_by(of, text)
            else:
                # a member of JSON, or a header field
                member = re.escape(re.split(r"[.'\]\[]", of.rstrip("']"))[-1])
                field = re.search(rf'(?i)(?:"{member}":\s*"|\b{member}:\s*)([^"\s]+)', text)
                value = field[1] if field else None
            if value and len(value) >= _LEAST_HIDDEN:
                found.add(value)
    return found


class ResponseParts:
    """Extracts the parts of one response that a step saves, by their expressions."""

    def __init__(self, response: HttpResponse, scenario: Scenario, step: str) -> None:
        """`step`: its name, for messages. Cookies and hidden values are of `scenario`'s user."""
        self._answer, self._scenario, self._step = response, scenario, step
        self._text: str | None = None

    def take(self, name: str, source: str) -> Any:
        """Return the first value of the part that `source` names. Raises NothingToSave if none.

        A string that may be a secret, and is not short, is added to the user's `hidden` as `name`.
        """
        try:
            values = self._values(source)
        except SearchedTooLong as error:
            raise SearchedTooLong(f"{self._step}: save {name}: {error}") from None
        if not values:
            raise NothingToSave(f"{self._step}: the response has no value at {source}")
        found = values[0]
        if isinstance(found, str) and len(found) >= _LEAST_HIDDEN and is_hidden(name, source):
            self._scenario.user.hidden[name] = found
        return found

    def _values(self, source: str) -> list[Any]:
        """Return the values of the part that `source` names; empty if there is none.

        Only a JSONPath can have several. Raises NothingToSave for a JSONPath if the response is not
        JSON.
        """
        kind, of = _kind_of(source)
        if kind == "$":
            return self._by_path(of)
        if kind == "header":
            found = self._answer.headers.get(of)
        elif kind == "cookie":
            values = [one.value for one in self._scenario.http.cookies if one.name == of]
            found = unquote(values[-1] or "") if values else None
        elif kind == "input":
            found = _input(of, self._page())
        else:
            found = found_by(of, self._page())
        return [] if found is None else [found]

    def _by_path(self, path: str) -> list[Any]:
        try:
            return jsonpath.values(self._answer.json(), path)
        except jsonpath.BadPath:
            raise
        except (ValueError, RecursionError):
            raise NothingToSave(
                f"{self._step}: the response is not JSON, which {path} needs; save a regex instead"
            ) from None

    def _page(self) -> str:
        if self._text is None:
            self._text = self._answer.text
        return self._text


def _input(of: str, page: str) -> str | None:
    form = _OF_FORM.fullmatch(of)
    return input_value(page, *(form.groups() if form else (of,)))


def _kind_of(source: str) -> tuple[str, str]:
    """Return the kind of an expression ("$", header, cookie, input, regex) and the rest.

    For "$" the second text is the whole expression. The kind is "" if it is none of these.
    """
    if source.startswith("$"):
        return "$", source
    found = _WORD.fullmatch(source)
    if found is None:
        return "", source
    # spaces at the end of an expression are a part of it
    kind = found[1].lower()
    return kind, found[2] if kind == "regex" else found[2].strip()
