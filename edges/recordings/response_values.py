"""Finds values of responses that later requests send, so that a flow has to save them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from osbench.common.plugin.request_values import is_token
from osbench.common.secrets.masking import holds_secret
from osbench.common.secrets.secret_names import is_secret
from osbench.edges.recordings.har_file import RecordedRequest
from osbench.edges.recordings.page_values import (
    is_random,
    page_inputs,
    pattern_source,
    random_values,
)
from osbench.edges.recordings.secret_arguments import (
    UnusedNames,
    argument_name,
)

#: Values of a response that are looked at, and how deep they may be.
_MOST, _DEPTH = 5000, 40
#: Shorter values are saved only where their names say that they are the same.
_LONG = 6
#: Shorter names, such as `id`, say too little without what they are of.
_SAYING = 5
#: Names of lists that do not say what is in them.
_GENERAL = frozenset(
    {"data", "results", "result", "content", "rows", "list", "values", "response", "body", "edges"}
    | {"node", "nodes", "entries", "payload"}
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ID_NAME = re.compile(
    r"(?i)(^|[_-])(id|uuid|guid|slug|key|ref|number)$|(?<=[a-z])(?-i:Id|ID|Uuid|UUID|Key)$"
)
#: Headers of responses that requests send back, in addition to headers with secrets.
_HEADERS = re.compile(r"(?i)(request-?key|nonce)$|^location$|^etag$")


@dataclass(frozen=True, kw_only=True)
class ResponseValue:
    """A value in a response, with its name and its place; a later request may send it."""

    #: Number of the request, from 0.
    step: int
    #: Source of the value, as a step saves it: input NAME, a JSONPath, header NAME, cookie NAME; ""
    #: on a page if only an expression finds it.
    path: str
    #: The name it stands under.
    name: str
    #: Kind of object that the value is the id of, in the singular; "" if unknown.
    of: str
    value: Any
    #: A value that users do not see, and send back.
    unseen: bool = False

    @property
    def rank(self) -> int:
        """Return a rank by the place: 0 input of a page, 1 JSON, 2 header, 3 cookie, 4 other.

        The lower, the more likely a response of the next run has the value in the same place.
        """
        kinds = ("input ", "$", "header ", "cookie ")
        return next((n for n, kind in enumerate(kinds) if self.path.startswith(kind)), len(kinds))


@dataclass
class ResponseValues:
    """Collects values of the responses so far, and decides which of them the steps of a flow save.

    To be fed in the order of requests: `source` and `sent` for a request, then `add`.
    """

    #: What each step saves: paths by name.
    saves: dict[int, dict[str, str]] = field(default_factory=dict)
    _found: dict[str, list[ResponseValue]] = field(default_factory=dict)
    _pages: dict[int, str] = field(default_factory=dict)
    _sent: set[str] = field(default_factory=set)
    _names: dict[tuple[int, str], str] = field(default_factory=dict)
    _unused: UnusedNames = field(default_factory=UnusedNames)

    def sent(self, value: Any) -> None:
        """Note a value that a request sends: later responses that contain it only repeat it."""
        self._sent.add(str(value))

    def add(self, step: int, request: RecordedRequest) -> None:
        """Add values of the response to request number `step` as possible sources of later ones.

        These are some headers, cookies, values of a JSON document, hidden inputs and random values
        of a page. Values that a request has sent before are ignored.
        """
        for name, value in dict(request.response_headers).items():
            # cookies go back by themselves
            wanted = is_secret(name) and name.lower() != "set-cookie"
            if (wanted or _HEADERS.search(name)) and is_token(name):
                self._take(
                    ResponseValue(step=step, path=f"header {name}", name=name, of="", value=value)
                )
        for name, value in dict(request.cookies).items():
            # scripts send some of them back in a header, too
            if is_token(name) and len(value) >= _LONG:
                self._take(_unseen_value(step, f"cookie {name}", name, unquote(value)))
        if request.method == "HEAD":
            return
        self._add_document(step, request.url.path, request.document)
        if request.page:
            self._add_page(step, request.page)

    def _add_document(self, step: int, path: str, document: Any) -> None:
        pieces = [piece for piece in path.split("/") if piece and not is_id(piece)]
        resource = singular(pieces[-1]) if pieces else ""
        for number, (where, name, owner, value) in enumerate(_leaves(document, "$", "", resource)):
            if number >= _MOST:
                break
            self._take(ResponseValue(step=step, path=where, name=name, of=owner, value=value))

    def _add_page(self, step: int, page: str) -> None:
        self._pages[step] = page
        for one, source in page_inputs(page):
            if one.kind == "hidden" or is_random(one.value):
                self._take(_unseen_value(step, source, one.name, one.value))
        for value in random_values(page):
            self._take(_unseen_value(step, "", "", value))

    def source(self, value: Any, name: str, *, typed: bool) -> str | None:
        """Return the name of the saved value that a request sends as `name`; None without source.

        A source is a response that had `value`, likely not by chance; its step is made to save it
        (`saves`). `typed`: the type must be equal, and not only the text.
        """
        # the sort keeps the order of responses
        for one in sorted(self._found.get(str(value), ()), key=lambda found: found.rank):
            if typed and type(value) is not type(one.value):
                continue
            if _same(one, value, name) and (saved := self._saved(one, name)):
                return saved
        return None

    def _take(self, one: ResponseValue) -> None:
        text = str(one.value)
        if text and text not in self._sent:
            self._found.setdefault(text, []).append(one)

    def _saved(self, one: ResponseValue, name: str) -> str | None:
        """Add a value to `saves` of the step that got it, and return its name there.

        None, without effect, if no source can find it. `name`: under which a request sends it.
        """
        key = (one.step, one.path or str(one.value))
        if key not in self._names:
            path = one.path or pattern_source(self._pages[one.step], str(one.value))
            if path is None:
                return None
            own = one.name or name
            whole = f"{one.of}_{own}" if one.of and len(own) < _SAYING else own
            self._names[key] = self._unused.of(argument_name(whole))
            self.saves.setdefault(one.step, {})[self._names[key]] = path
        return self._names[key]


def _unseen_value(step: int, path: str, name: str, value: str) -> ResponseValue:
    return ResponseValue(step=step, path=path, name=name, of="", value=value, unseen=True)


def is_id(piece: str) -> bool:
    """Return whether a part of a path looks like an id.

    Ids are integers, UUIDs, 16 or more hexadecimal digits, or 20 or more characters with a digit.
    """
    return bool(
        re.fullmatch(
            r"\d+|[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", piece
        )
        or (re.fullmatch(r"[\w.~=-]{20,}", piece) and re.search(r"\d", piece))
    )


def singular(word: str) -> str:
    """Return the singular of a list's name as an identifier, such as `item` for `Items`."""
    word = argument_name(word)
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _same(one: ResponseValue, value: Any, name: str) -> bool:
    """Return whether a request's `value` likely comes from the response's equal value `one`.

    Otherwise they are equal by chance. Decided by their names and the form of the value; `name`:
    under which the request sends it.
    """
    if one.unseen and (name == one.name or is_random(str(value))):
        return True
    here, there = argument_name(name), argument_name(one.name)
    of = singular(here.removesuffix("_id"))
    if is_id_name(one.name) and one.of and one.of == of:
        return True
    if here == there and (is_id_name(name) or is_secret(name)) and one.name not in ("id", "key"):
        return True
    text = str(value)
    if len(text) < _LONG or not re.fullmatch(r"[^\s]+", text):
        return False
    tells = any(is_id_name(part) or holds_secret(part, text) for part in (name, one.name))
    random = is_random(text) or (is_id(text) and len(text) >= 2 * _LONG)
    return tells or random or one.path.startswith("header ")


def is_id_name(name: str) -> bool:
    """Return whether a value's name shows that it is an id, such as `userId` or `order_key`."""
    return bool(_ID_NAME.search(name))


def _leaves(
    value: Any, path: str, name: str, owner: str, depth: int = 0
) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the strings and integers of a JSON document as (JSONPath, name, owner, value).

    The owner is the kind of object that contains it, such as `order`. Parts below `_DEPTH` levels,
    or under unprintable keys, are left out. `path`, `name`, `owner`: of `value`.
    """
    if depth > _DEPTH:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not key.isprintable():
                # no JSONPath to it can be written down
                continue
            below = singular(key) if key.lower() not in _GENERAL else owner
            nested = isinstance(inner, Mapping | list)
            yield from _leaves(
                inner, _member(path, key), key, below if nested else owner, depth + 1
            )
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{at}]", name, owner, depth + 1)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield path, name, owner, value


def _member(path: str, key: str) -> str:
    if _PLAIN_NAME.fullmatch(key):
        return f"{path}.{key}"
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{quoted}']"
