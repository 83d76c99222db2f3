"""What a span was about, without the values: statements without literals, paths without ids.

Two calls of the same work get the same words, so that they can be counted together, and nothing
a user has sent stands in them.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

#: Characters of a detail; what differs only beyond them is told apart by a hash.
LIMIT = 200

#: Comments and all that is quoted, found together: each may hold what looks like another. Dialects
#: read some of it differently, and osbench does not know whose a statement is; from where they
#: part everything is `rest`, and goes. So does what was cut off within quotes or a comment.
_TOKEN = re.compile(
    r"""
    (?P<comment>
        /\*[^*/]*(?:(?:\*(?!/)|/(?!\*))[^*/]*)*\*/   # nested ones end late in PostgreSQL alone
        | --(?=\s)[^\r\n]*(?=\r?\n|\Z)
        | (?:--|\#)[^\r\n'"`$]*(?=\r?\n|\Z)         # operators elsewhere: no quote may follow
    )
    | (?P<string>
        '[^'\\]*(?:(?:''|\\[^'])[^'\\]*)*'          # whether \\' ends it depends
        | \$(?<![\w$]\$)(?P<tag>[^\W\d]\w*|)\$.*?\$(?P=tag)\$
    )
    | (?P<quoted>"[^"\\]*(?:(?:""|\\[^"])[^"\\]*)*")
    | (?P<name>`[^`'"\r\n]*`)
    | (?P<rest>(?:/\*|--|\#|['"`]|\$(?<![\w$]\$)(?:[^\W\d]\w*)?\$).*)
    """,
    re.S | re.X,
)
#: What is quoted twice is a name in standard SQL and a string in MySQL. It is taken for a name
#: only where no string can stand, or none is likely to.
_WORD = re.compile(r'"\w+"\Z')
_BEFORE_NAME = re.compile(
    r"(?:\.|\b(?:SELECT|DISTINCT|FROM|JOIN|INTO|UPDATE|TABLE|AS|WHERE|SET|(?:ORDER|GROUP)\s+BY)\s+)\Z",
    re.I,
)
_AFTER_NAME = re.compile(r"\s*\.")
_BOUND = re.compile(r"%\(\w+\)s|%s|(?<![:\w]):\w+|\$\d+|@\w+")
_NUMBER = re.compile(r"(?<![\w.\"`])[-+]?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)\b", re.I)
_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)*\s*\)")
_LISTS = re.compile(r"\(\.\.\.\)(?:\s*,\s*\(\.\.\.\))+")
_SPACE = re.compile(r"\s+")
#: So long a list of columns would leave no room for what it is selected from.
_COLUMNS = re.compile(r"\b(SELECT(?: DISTINCT)?) (?:(?! FROM\b)[^()]){60,} FROM\b", re.I)

#: Words that a statement begins with; DELETE is a method too, but then of a path.
_SQL = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|MERGE|WITH|CREATE|ALTER|DROP|TRUNCATE|CALL|SET|SHOW"
    r"|GRANT|EXPLAIN|EXEC|EXECUTE|VALUES)\s+(?!/|\w+://)\S",
    re.I,
)
_LITERAL = re.compile(r"['\"`]")
#: UUIDs, with dashes or without, as in `reply_<uuid>`, and what RabbitMQ makes up.
_ID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12,}|(?<=amq\.gen-)[\w-]+", re.I
)
_OPAQUE = re.compile(r"[0-9a-f-]*\d[0-9a-f-]*\Z", re.I)
_QUERY = re.compile(r"(?<=\w)[?#].*")
_VERSION = re.compile(r"v\d+(?:\.\d+)*\Z")
_LONG = 32


@lru_cache(maxsize=8192)
def statement(sql: str) -> str:
    """A statement with `?` for each value and `(...)` for each list of values.

    Many columns that are selected are `...`.
    """
    text = _TOKEN.sub(_without_value, sql)
    text = _BOUND.sub("?", text)
    text = _NUMBER.sub("?", text)
    text = _LIST.sub("(...)", text)
    text = _LISTS.sub("(...)", text)
    text = _SPACE.sub(" ", text).strip()
    return cut(_COLUMNS.sub(r"\1 ... FROM", text))


@lru_cache(maxsize=8192)
def path(text: str) -> str:
    """A path without query, with `{id}` for each part that holds a digit or is very long."""
    plain = text.partition("?")[0].partition("#")[0]
    if "://" in plain:
        plain = "/" + plain.split("://", 1)[1].partition("/")[2]
    return cut("/".join(map(_part, plain.split("/"))))


@lru_cache(maxsize=8192)
def title(text: str) -> str:
    """A name that a service gave, which may hold a statement, a path or an id, without values."""
    if _SQL.match(text):
        return statement(text)
    if _LITERAL.search(text):
        text = statement(text)
    return cut(" ".join(map(_word, text.split(" "))))


def cut(text: str) -> str:
    """A text of `LIMIT` characters at most; different ones stay different."""
    if len(text) <= LIMIT:
        return text
    mark = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{text[: LIMIT - 12]}... {mark}"


def _word(word: str) -> str:
    if word.startswith("/") or "://" in word:
        return path(word)
    word = _ID.sub("{id}", _QUERY.sub("", word))
    if "/" not in word:
        return word
    # not of a path, or of a part of one: names of packages may hold digits
    parts = word.split("/")
    return "/".join("{id}" if _OPAQUE.match(part) else part for part in parts)


def _without_value(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "comment":
        return " "
    if kind == "name" or (kind == "quoted" and _is_name(found)):
        return found[0]
    return "?"


def _is_name(found: re.Match[str]) -> bool:
    text, start = found.string, found.start()
    if not _WORD.match(found[0]):
        return False
    # a few characters before it tell: all of them for each name would take time by its square
    before = text[max(start - 20, 0) : start]
    return bool(_BEFORE_NAME.search(before) or _AFTER_NAME.match(text, found.end()))


def _part(part: str) -> str:
    if _VERSION.match(part):
        return part
    return "{id}" if len(part) >= _LONG or any(char.isdigit() for char in part) else part
