"""Regular expressions for responses of servers, with a limit on their CPU time.

Python's expressions backtrack, and some of them take years for a short text. So only expressions
are accepted whose work is bounded by the square of a match's length; that length and the time for a
text have limits, too.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from functools import lru_cache
from time import thread_time
from typing import Any

#: Characters of an expression, of a match, and of a text that are looked at.
PATTERN_CHARS = 500
MATCH_CHARS = 4000
TEXT_CHARS = 2 * 1024 * 1024
#: Seconds of CPU for a text.
TEXT_S = 1.0
#: Positions at which a match is tried before the time is looked at again.
_TRIES = 16
#: Ways to match one text that bounded repeats and alternatives may add up to.
_MOST_WAYS = 64
#: The same next to an unbounded repeat.
_FEW_WAYS = 4

# the module has no public name
_parser: Any = importlib.import_module("re._parser")
_SINGLE = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY"})
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
#: Repeats and groups that give nothing back.
_KEPT = frozenset({"POSSESSIVE_REPEAT", "ATOMIC_GROUP"})

Part = tuple[Any, Any]


class BadPattern(ValueError):
    """Raised if a regular expression is not accepted; the message says why."""


class SearchedTooLong(ValueError):
    """Raised if searching a text took more than TEXT_S seconds of CPU."""


def found_by(pattern: str, text: str) -> str | None:
    """Return the first match of `pattern` in `text`: its group, if it has one, else all of it.

    None without a match, or if the group has no part in it. Searches the first TEXT_CHARS
    characters, for matches of at most MATCH_CHARS. Raises BadPattern; SearchedTooLong after TEXT_S
    seconds of CPU.
    """
    compiled, start = _compile_pattern(pattern)
    text = text[:TEXT_CHARS]
    until = thread_time() + TEXT_S
    at = tries = 0
    while at <= len(text):
        if start:
            at = text.find(start, at)
            if at < 0:
                return None
        if found := compiled.match(text, at, at + MATCH_CHARS):
            return found[compiled.groups]
        at += 1
        tries += 1
        if tries % _TRIES == 0 and thread_time() > until:
            raise SearchedTooLong(
                f"the regular expression {pattern!r} took over {TEXT_S:g} s of CPU; begin it "
                'with literal text, as in id="([a-z]+)"'
            )
    return None


def check_pattern(pattern: str) -> None:
    """Raise BadPattern if a regular expression is empty, malformed or might take too long."""
    if not pattern:
        raise BadPattern("the regular expression is empty; write one")
    _compile_pattern(pattern)


@lru_cache(1000)
def _compile_pattern(pattern: str) -> tuple[re.Pattern[str], str]:
    """Return the compiled expression, and the literal text that begins each match, or "". Cached.

    Raises BadPattern if it is too long, is malformed, has several groups or might take too long.
    """
    if len(pattern) > PATTERN_CHARS:
        raise BadPattern(f"a regular expression must have at most {PATTERN_CHARS} characters")
    try:
        compiled = re.compile(pattern)
        tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(f"the regular expression {pattern!r} cannot be read: {error}") from None
    if compiled.groups > 1:
        raise BadPattern(
            f"the regular expression {pattern!r} has {compiled.groups} groups: write (?:...) for"
            " all but the one to save"
        )
    parts = list(tree)
    cost = _Cost(pattern, ignore_case=bool(compiled.flags & re.IGNORECASE))
    cost.add(parts, None)
    if cost.open_repeats > 1 or cost.ways > (_FEW_WAYS if cost.open_repeats else _MOST_WAYS):
        raise BadPattern(
            f"the regular expression {pattern!r} may take too long: too many of its repeats can"
            ' match the text after them; name the character that ends them, as in [^"]+"'
        )
    return compiled, "" if compiled.flags & re.IGNORECASE else _beginning(parts)


class _Cost:
    """Estimate of how often an expression may backtrack over a text, from its parse tree."""

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._pattern = pattern
        self._ignore_case = ignore_case
        #: Unbounded repeats that can match what follows them.
        self.open_repeats = 0
        #: Ways to match one text by bounded repeats and alternatives.
        self.ways = 1

    def add(self, parts: Sequence[Part], after: Part | None) -> None:
        """Add the cost of successive parse-tree nodes; the node `after` follows (None: the end).

        Raises BadPattern for a look-around, a back reference, or a repeat within a repeat.
        """
        for place, (code, value) in enumerate(parts):
            following = parts[place + 1] if place + 1 < len(parts) else after
            name = str(code)
            if name in _REPEATS or name == "POSSESSIVE_REPEAT":
                self._add_repeat(name, value, following)
            elif name == "SUBPATTERN":
                self.add(list(value[3]), following)
            elif name == "ATOMIC_GROUP":
                self.add(list(value), following)
            elif name == "BRANCH":
                self.ways *= len(value[1])
                for branch in value[1]:
                    self.add(list(branch), following)
            elif name not in _SINGLE and name != "AT":
                raise BadPattern(
                    f"the regular expression {self._pattern!r} must not use (?=, (?<=, (?! or \\1"
                )

    def _add_repeat(self, name: str, value: Any, following: Part | None) -> None:
        least, most, inner = value[0], value[1], list(value[2])
        if int(most) > 1 and any(_varies(part) for part in inner):
            raise BadPattern(
                f"the regular expression {self._pattern!r} has a repeat within a repeat, which may"
                " take too long; leave one of them out"
            )
        self.add(inner, following)
        if least == most or name in _KEPT or following is None:
            return
        if len(inner) == 1 and self._ends_at(inner[0], following):
            return
        if int(most) - int(least) < _MOST_WAYS:
            self.ways *= int(most) - int(least) + 1
        else:
            self.open_repeats += 1

    def _ends_at(self, part: Part, following: Part) -> bool:
        """Return whether a repeat cannot match the node `following`: then it does not backtrack."""
        begin = _first_characters(following)
        if not begin:
            return False
        if not self._ignore_case:
            return not any(_matches(part, one) for one in begin)
        # [^a] matches neither a nor A then, and [a] both
        several = all if _is_negated(part) else any
        return not any(several(_matches(part, f) for f in (c.lower(), c.upper())) for c in begin)


def _varies(part: Part) -> bool:
    """Return whether a node may match texts of several lengths, or one text in several ways."""
    code, value = str(part[0]), part[1]
    if code in _REPEATS or code in _KEPT:
        return True
    if code == "SUBPATTERN":
        return any(map(_varies, value[3]))
    return code not in _SINGLE and code != "AT"


def _first_characters(part: Part) -> set[str]:
    """Return the characters that may begin a match; empty if unknown or too many."""
    code, value = str(part[0]), part[1]
    if code == "LITERAL":
        return {chr(value)}
    if code == "IN" and all(str(one[0]) == "LITERAL" for one in value):
        return {chr(one[1]) for one in value}
    if code == "SUBPATTERN" and len(value[3]):
        return _first_characters(value[3][0])
    if code in _REPEATS and value[0] > 0:
        return _first_characters(value[2][0])
    return set()


def _matches(part: Part, character: str) -> bool:
    """Return whether a node can match `character`; True if that is unknown."""
    code, value = str(part[0]), part[1]
    if code == "LITERAL":
        return chr(value) == character
    if code == "NOT_LITERAL":
        return chr(value) != character
    if code == "SUBPATTERN" and len(value[3]) == 1:
        return _matches(value[3][0], character)
    if code != "IN":
        return True
    negated = bool(value) and str(value[0][0]) == "NEGATE"
    return negated != any(_is_of(one, character) for one in value)


def _is_negated(part: Part) -> bool:
    code, value = str(part[0]), part[1]
    if code == "SUBPATTERN" and len(value[3]) == 1:
        return _is_negated(value[3][0])
    return code == "NOT_LITERAL" or (code == "IN" and str(value[0][0]) == "NEGATE")


def _is_of(one: Part, character: str) -> bool:
    code, value = str(one[0]), one[1]
    if code == "LITERAL":
        return chr(value) == character
    if code == "RANGE":
        return bool(value[0] <= ord(character) <= value[1])
    if code != "CATEGORY":
        return False
    kinds = {"SPACE": r"\s", "DIGIT": r"\d", "WORD": r"\w"}
    name = str(value).removeprefix("CATEGORY_")
    holds = re.fullmatch(kinds[name.removeprefix("NOT_")], character) is not None
    return holds != name.startswith("NOT_")


def _beginning(parts: Sequence[Part]) -> str:
    found = ""
    for code, value in parts:
        if str(code) != "LITERAL":
            break
        found += chr(value)
    return found
