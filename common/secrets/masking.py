"""Masks secrets in shown and stored values; `secret_names` defines secrets.

`mask` is for values, `mask_text` for texts of others, and `mask_url` for messages of osbench, in
which `password: expected a text` names a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, unquote_plus

from osbench.common.secrets.secret_names import MASK, Place, is_secret, names_beside
from osbench.common.secrets.url_masking import CLOSING, mask_url

#: A name and what stands between it and its value: as in JSON, headers, key=value, --key value.
_NAME = re.compile(
    r"""(?x)
    (?:
      \b form-data; \s? name="(?P<part> [^"\\]{1,100} )" [^\r\n]{0,200}
      (?: \r?\n [^\r\n]{1,200} ){0,4} \r?\n \r?\n
    | \b name \\{0,3} ["']? \s{0,3} [:=] \s{0,3} \\{0,3} ["'] (?P<pair> [^"'\\]{1,100} )
      \\{0,3} ["'] [\s,]{1,10} ["'\\]{0,4} value \\{0,3} ["']? \s{0,3} [:=] \s{0,3}
    | (?<![\w-]) (?P<name> [\w-]++ ) (?: %5[Dd] | \] )? (?P<quoted> \\{0,3} ["'] )?
      (?: \s{0,3} (?: => | [:=] ) \s{0,20} | (?P<comma> \s{0,3} , \s{0,3} (?=[bru]?["']) ) )
    | (?<![\w-]) -- (?P<option> [\w-]++ ) \s{1,3} (?=[^\s-])
    | < (?: \w{1,40} : )? (?P<tag> [\w.-]++ ) (?: \s [^<>]{0,300} )? > (?=[^<\s])
    )
    """
)
#: A value in quotes, whose end may be cut off.
_QUOTED = re.compile(
    r"""(?xs) [bruBRU]{0,2} (?: (?P<escaped> \\{1,3} ["'] ) (?: (?! (?P=escaped) ) . )*+
      | "(?: [^"\\] | \\. | "" )*+ | '(?: [^'\\] | \\. | '' )*+ )"""
)
#: One of these is between a name and its value.
_MARK = re.compile(r"[:=>,]|--")
_BARE = re.compile(r"(?:[^\s&]|&(?![\w%.\[\]-]{1,80}=))+")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,80}[(\[]")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|negotiate|token|dpop|apikey)\s{1,3}(?=\S)")
_TO_LINE_END = re.compile(r"[^\r\n]+")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
#: A number of JSON, which ends before what follows it.
_JSON_NUMBER = re.compile(r"-?\d[\d.]{0,40}+(?=\s{0,3}[,}\]])")
#: Anchor, tag, dash or sign of a block of YAML, before the value.
_YAML = re.compile(
    r"(?:[&!]\S{0,80}[ \t]{1,3}|-[ \t]{1,3}|[|>][-+\d]{0,2}[ \t]{0,3}\r?\n\s{1,20}){1,3}(?=\S)"
)
#: Names of the name in `{name: ..., value: ...}`.
_NAMES = ("name", "key", "header")
_NUMBERS = re.compile(r"[\d\s,.\[\]-]+")
#: Header fields whose values have spaces and quotes in them.
_LINES = re.compile(r"(?i)(?:authori[sz]ation|cookie)[\w-]*$")
#: Names whose mappings have parameters of a query, or cookies, by name.
_PLACES = {
    **dict.fromkeys(("query", "params", "form", "data", "querystring"), Place.QUERY),
    **dict.fromkeys(("cookie", "cookies"), Place.COOKIE),
}
#: What programs write for a value that is not there, or is a flag.
_NOTHING = frozenset({"", "null", "None", "true", "false", "True", "False"})
#: A value that is filled in for each iteration, with a scheme before it.
_FILLED_IN = re.compile(r"(?:\w+ )?\{(?:(?:saved|data|user)\.[\w-]+|iteration|run)\}")
#: Characters of a list in which a section begins, if it has any.
_SECTION_CHARS = 200
#: Shorter values are not secrets, and would hide parts of other words, characters.
_LEAST_SECRET = 4


def mask_text(text: str) -> str:
    """Return `text` with `***` for secrets: in URLs, after secret names, or known by form."""
    text = mask_url(text)
    if not _MARK.search(text):
        return text
    parts: list[str] = []
    kept = at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        begin, end = _value_span(text, found)
        if begin < end:
            parts += [text[kept:begin], MASK]
            kept = at = end
    return "".join([*parts, text[kept:]]) if parts else text


def mask_field(name: str, value: str, place: Place = Place.FIELD) -> str:
    """Return `***` if `value` is secret by name and place, else `value` with secrets masked."""
    return MASK if value and is_secret(name, value, place) else mask_text(value)


def error_text(error: BaseException) -> str:
    """Return "TYPE: message" of an exception of other code, with secrets masked."""
    return f"{type(error).__name__}: {mask_text(str(error))}"


def holds_secret(name: str, value: str, place: Place = Place.FIELD) -> bool:
    """Return whether `value` is a secret by name or form, or has one in it; False for ""."""
    return bool(value) and (is_secret(name, value, place) or mask_text(value) != value)


def mask(value: Any) -> Any:
    """Return a copy of a JSON value with `***` instead of secrets, by names, URLs and forms.

    Tuples become lists; bytes stay bytes unless they contain a secret, then they become a string.
    """
    return _masked_value(value, Place.FIELD)


def secret_values(value: Any, *, secret: bool = False) -> Iterator[str]:
    """Yield the secret strings in a JSON value: values of secret names, and secrets in URLs.

    Of a string with several lines each line; none shorter than 4 characters. `secret`: all strings
    of `value` are secret.
    """
    yield from _secrets(value, Place.FIELD, secret)


def _masked_value(value: Any, place: Place) -> Any:
    if isinstance(value, Mapping):
        return {
            _shown_name(name): _masked_member(known, inner, place, beside)
            for name, known, inner, beside in _members(value)
        }
    if isinstance(value, list | tuple):
        if _is_pair(value) and value[1] and is_secret(_text(value[0]), value[1], place):
            return [value[0], MASK]
        return [
            MASK if inner and _is_option(before) else _masked_value(inner, place)
            for before, inner in zip(["", *value], value, strict=False)
        ]
    if isinstance(value, bytes | bytearray):
        text = value.decode("utf-8", "replace")
        shown = mask_text(text)
        return value if shown == text else shown
    return mask_text(value) if isinstance(value, str) else value


def _masked_member(name: str, inner: Any, place: Place, beside: frozenset[str]) -> Any:
    below = _PLACES.get(name.lower(), Place.FIELD)
    if isinstance(inner, Mapping) and name.lower() == "save":
        # names of saved values of a flow, and their places in a response
        return {key: _masked_value(path, Place.FIELD) for key, path in inner.items()}
    if isinstance(inner, Mapping) and below is Place.COOKIE:
        return _masked_value(inner, below)
    if isinstance(inner, str) and _FILLED_IN.fullmatch(inner):
        return inner
    if inner and is_secret(name, inner, place, beside):
        return MASK
    return _masked_value(inner, below)


def _members(value: Mapping[Any, Any]) -> Iterator[tuple[Any, str, Any, frozenset[str]]]:
    """Yield (name, deciding name, value, all names in lower case) of each member of a mapping.

    In `{name: password, value: x}` "password" decides on the value; `key` or `header` may stand
    for `name`. Every other name decides on its own value.
    """
    pair = _named_pair(value)
    beside = names_beside(map(str, value))
    for name, inner in value.items():
        known = str(name)
        if pair:
            known = {"value": pair, "key": "name"}.get(known, known)
        yield name, known, inner, beside


def _secrets(value: Any, place: Place, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for _, known, inner, beside in _members(value):
            below = _PLACES.get(known.lower(), Place.FIELD)
            hidden = secret or is_secret(known, inner, place, beside)
            yield from _secrets(inner, below, hidden)
    elif isinstance(value, list | tuple):
        paired = _is_pair(value) and is_secret(_text(value[0]), value[1], place)
        for inner in value[1:] if paired else value:
            yield from _secrets(inner, place, secret or paired)
    elif isinstance(value, str | bytes):
        text = _text(value)
        found = _lines(text) if secret else _of_urls(text)
        yield from (one for one in found if len(one.strip()) >= _LEAST_SECRET)


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a secret; of "Bearer x" also "x"."""
    yield from text.splitlines()
    if scheme := _SCHEME.match(text):
        yield text[scheme.end() :]


def _of_urls(text: str) -> Iterator[str]:
    """Yield the password and the secret parameters of a text that is a URL or a form.

    Each as it is written, and percent-decoded.
    """
    if "://" in text:
        user, _, _ = text.partition("://")[2].rpartition("@")
        password = user.partition(":")[2]
        yield from {password, unquote(password)}
    if "=" in text and " " not in text:
        pairs = [pair.partition("=") for pair in re.split(r"[?#&;]", text)]
        names = [unquote_plus(name) for name, _, _ in pairs]
        beside = names_beside(names)
        for name, (_, _, value) in zip(names, pairs, strict=True):
            if is_secret(name, value, Place.QUERY, beside):
                yield from {value, unquote_plus(value)}


def _named_pair(value: Mapping[Any, Any]) -> str:
    """Return the text that names the value in `{name: ..., value: ...}`, as of headers; or ""."""
    if "value" not in value:
        return ""
    found = (value.get(name) for name in _NAMES)
    return next((name for name in found if isinstance(name, str)), "")


def _is_pair(value: Sequence[Any]) -> bool:
    """Return whether a list is [name, value], as for a header.

    Two strings are, unless the second is itself a secret's name, as in `[password, totp]`.
    """
    if len(value) != 2 or not all(isinstance(one, str | bytes) for one in value):
        return False
    second = _text(value[1])
    return not (second.isalpha() and is_secret(second))


def _is_option(before: Any) -> bool:
    """Return whether an item of a list is an option with a secret value, such as `--password`.

    The next item is the value. False for `--password=x`.
    """
    if not isinstance(before, str) or not before.startswith("-"):
        return False
    return "=" not in before and is_secret(before.lstrip("-"))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _shown_name(name: Any) -> Any:
    return mask_url(name) if isinstance(name, str) and "://" in name else name


def _value_span(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Return begin and end of the secret value after a name in `text`; equal if there is none.

    `found`: the match of `_NAME`.
    """
    at = found.end()
    nothing = at, at
    name = found["part"] or found["pair"] or found["tag"] or found["option"] or found["name"]
    structured = found["quoted"] or found["part"] or found["pair"] or found["tag"]
    if found["comma"] and not (found["quoted"] and _opens_pair(text, found)):
        return nothing
    if not is_secret(name, "", Place.FIELD if structured else Place.TEXT):
        return nothing
    if not structured and ":" in found[0] and text[max(0, found.start() - 1)] == "/":
        # the end of a path, as in `POST /v3/auth/tokens: connection refused`
        return nothing
    if found["tag"]:
        end = text.find("<", at)
        return at, end if end >= 0 else len(text)
    if found["part"] or (not structured and _is_whole_line(text, at, name, found[0])):
        line = _TO_LINE_END.match(text, at)
        return at, line.end() if line else at
    return _value_end(text, at, name, found[0])


def _opens_pair(text: str, found: re.Match[str]) -> bool:
    """Return whether a matched quoted name before a comma begins a tuple: `('password', '...')`."""
    return text[max(0, found.start() - 4) : found.start()].rstrip("\"'\\bru").endswith("(")


def _is_whole_line(text: str, at: int, name: str, said: str) -> bool:
    """Return whether the value at `at` ends with its line, as of a Cookie or Authorization header.

    `name`: of the field; `said`: the text matched before the value.
    """
    if not _LINES.search(name) or _SCHEME.match(text, at):
        return False
    return said.rstrip().endswith(":") or not text.startswith(("'", '"'), at)


def _value_end(text: str, at: int, name: str, said: str) -> tuple[int, int]:
    if quoted := _QUOTED.match(text, at):
        opening = len(quoted[0]) - len(quoted[0].lstrip("bruBRU\\")) + 1
        return (at + opening, quoted.end()) if quoted.end() > at + opening else (at, at)
    if text.startswith(("[", "{"), at):
        if not is_secret(name, [{}]) and "{" in text[at : at + _SECTION_CHARS]:
            # a section, whose names say more
            return at, at
        end = _bracket_end(text, at)
        return at, at if _is_kept(name, text[at:end]) else end
    number = _JSON_NUMBER.match(text, at) if said.rstrip(" :")[-1] in "\"'" else None
    if number:
        return at, number.end() if is_secret(name, number[0]) else at
    return _bare_span(text, at, name, said)


def _bare_span(text: str, at: int, name: str, said: str) -> tuple[int, int]:
    """Return begin and end of the unquoted secret value at `at`; equal if it is not secret.

    `name`: of the value; `said`: the text matched before it.
    """
    scheme = _SCHEME.match(text, at)
    begin = scheme.end() if scheme else at
    if ":" in said and (marks := _YAML.match(text, at)):
        begin = marks.end()
    bare = _BARE.match(text, begin)
    if bare is None or (" = " in said and _CALL.match(bare[0])):
        return at, at
    end = begin + len(bare[0].rstrip(CLOSING))
    value = text[begin:end]
    if value in _NOTHING or not is_secret(name, value):
        return at, at
    # the scheme of a header field is none, and says how the rest is read when it is masked again
    return begin if _LINES.search(name) else at, end


def _is_kept(name: str, text: str) -> bool:
    """Return whether a list or object under a secret name is shown: empty, or numbers only."""
    if not text.strip("[]{} \t\r\n"):
        return True
    return not is_secret(name, [1]) and bool(_NUMBERS.fullmatch(text))


def _bracket_end(text: str, at: int) -> int:
    """Return the index after the bracket that closes the one at `at`, else the text's end."""
    depth = 0
    for found in _BRACKETS.finditer(text, at):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
            if not depth:
                return found.end()
    return len(text)
