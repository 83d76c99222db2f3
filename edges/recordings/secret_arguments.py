"""Task arguments that replace secrets of a recording, and strings that contain them."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from osbench.coordinator.task.taskfile.flow_task import Computed

#: Names that mean something else in a task file.
_TAKEN = frozenset(
    {"base", "env", "min", "max", "ceil", "round", "range", "dict", "lipsum", "cycler", "joiner"}
    | {"namespace", "true", "false", "none", "self", "loop", "caller", "varargs", "kwargs"}
    | {"block", "extends", "filter", "include", "macro", "set", "call", "recursive", "ignore"}
    | {"missing", "without", "context", "scoped", "required"}
    | {word.lower() for word in keyword.kwlist}
)


@dataclass(frozen=True)
class Argument:
    """A task argument that is a part of a string; other parts of the string are literal."""

    name: str


Parts = list[str | Argument]


class SecretArguments:
    """The task arguments that replace a recording's secrets: one each, with a hint for users."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._unused = UnusedNames()
        #: What to give, by name.
        self.hints: dict[str, str] = {}

    def of(self, value: str, name: str, hint: str) -> Argument:
        """Return the task argument for the secret `value`; equal values have the same argument.

        A new argument is named like `name`, with a number if that name is taken. Its `hint`
        describes the value to the user.
        """
        if value not in self._names:
            self._names[value] = self._unused.of(argument_name(name))
            self.hints[self._names[value]] = hint
        return Argument(self._names[value])


def argument_name(text: str) -> str:
    """Convert a text to an identifier for templates: lower case, words joined by "_".

    At most 40 characters, then `value_` before names that are empty, taken in templates or begin
    with a digit.
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:40]
    if not name or name[0].isdigit() or name in _TAKEN:
        name = f"value_{name}".rstrip("_")
    return name


class UnusedNames:
    """Makes names of a task unique: `of` adds a number to a name that it has returned before."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        #: The last number that was tried behind a name: a recording may have thousands of one name.
        self._last: dict[str, int] = {}

    def of(self, name: str) -> str:
        """Return `name`; if it is used `name_2`, `name_3` and so on. The result counts as used."""
        found, number = name, self._last.get(name, 1)
        while found in self._used:
            number += 1
            found = f"{name}_{number}"
        self._last[name] = number
        self._used.add(found)
        return found


class KnownSecrets:
    """Finds known secrets within strings, in a time that does not depend on their number."""

    #: Shorter ones are not looked for.
    LEAST = 8

    def __init__(self, secrets: Iterable[str]) -> None:
        self._long = {one for one in secrets if len(one) >= self.LEAST}
        #: Their lengths, longest first, by their first characters: tokens of a kind begin alike.
        self._lengths: dict[str, list[int]] = {}
        for start, length in sorted({(one[: self.LEAST], len(one)) for one in self._long}):
            self._lengths.setdefault(start, []).insert(0, length)

    def split(self, text: str) -> Iterator[tuple[str, str]]:
        """Split `text` at known secrets: yield (text before, secret) for each, at last (rest, "").

        Only secrets of at least `LEAST` characters are found; of several at one position the
        longest.
        """
        begin = at = 0
        while at <= len(text) - self.LEAST:
            lengths = self._lengths.get(text[at : at + self.LEAST], ())
            candidates = (text[at : at + length] for length in lengths)
            found = next((one for one in candidates if one in self._long), "")
            if found:
                yield text[begin:at], found
                begin = at = at + len(found)
            else:
                at += 1
        yield text[begin:], ""


def literal(text: str) -> str:
    """Return `text` with {brace} for braces that `HttpFlow.run` would take for placeholders."""
    return re.sub(r"\{(?=[A-Za-z_])", "{brace}", text)


def joined_string(parts: Parts) -> str | Computed:
    """Return the string of the parts; if one is an argument, a `Computed` that gives the string."""
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts))
    said = [
        part.name if isinstance(part, Argument) else json.dumps(part, ensure_ascii=False)
        for part in parts
        if part
    ]
    whole = f"({' ~ '.join(said)})" if len(said) > 1 else f"{said[0]} | string"
    return Computed(f"{whole} | tojson")
