"""Reads YAML and JSON documents strictly: no duplicate keys, only JSON values."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from osbench.common.errors import Problem
from osbench.common.files.yaml_documents import YamlBoundError, check_bounds, open_yaml
from osbench.coordinator.task.taskfile.places import inside, shown_value

LOG = logging.getLogger(__name__)

#: Most characters of a document: twenty thousand subtasks, which take some 20 s to read.
LONGEST = 4 << 20
#: Integers that messages to workers can hold.
_LEAST, _MOST = -(2**63), 2**64 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Numbers of YAML 1.1 that are not decimal: 010 is 8, 1:30 is 90.
_OLD_NUMBER = re.compile(r"[-+]?(?:0[0-7_]+|[0-9_]+(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MERGE = "tag:yaml.org,2002:merge"


def parse_document(text: str) -> tuple[Any, list[Problem]]:
    """Return the value of a YAML or JSON text, and its problems; (None, []) for an empty text.

    Problems are errors of YAML, duplicate keys, exceeded bounds, and values that JSON does not
    have. With only the last kind the value is returned all the same, else None. Logs a warning for
    each octal or base-60 number of the value.
    """
    try:
        return _load_document(text)
    except yaml.MarkedYAMLError as error:
        reasons = ", ".join(part for part in (error.problem, error.context) if part)
        return None, [Problem(_position(error.problem_mark or error.context_mark), reasons)]
    except YamlBoundError as error:
        return None, [Problem("", str(error))]
    except (ValueError, OverflowError) as error:
        return None, [Problem("", f"holds a value that YAML cannot read: {error}; quote it")]
    except RecursionError:
        return None, [Problem("", "is nested too deeply; use fewer levels")]


def _load_document(text: str) -> tuple[Any, list[Problem]]:
    loader = open_yaml(text, LONGEST)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        check_bounds(node)
        problems = list(_repeats(node, set(), set()))
        if problems:
            return None, problems
        value = loader.construct_document(node)
        for line in _misread_numbers(node, loader, set()):
            LOG.warning("%s", line)
    finally:
        loader.dispose()
    return value, list(_foreign(value, "", None))


def _misread_numbers(node: yaml.Node, loader: yaml.SafeLoader, seen: set[int]) -> Iterator[str]:
    """Yield a warning for each number in `node` that YAML 1.1 reads as octal or in base 60.

    The author may have meant a decimal number. `seen`: ids of collections already visited; added
    to.
    """
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and _OLD_NUMBER.fullmatch(node.value):
            base = "in base 60" if ":" in node.value else "as octal"
            yield (
                f"{_position(node.start_mark)}: YAML reads {node.value} {base}, as"
                f" {loader.construct_object(node)}; write that number, or put it in quotes"
            )
        return
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    for item in node.value:
        for one in item if isinstance(item, tuple) else (item,):
            yield from _misread_numbers(one, loader, seen)


def _position(mark: yaml.Mark | None) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _repeats(node: yaml.Node, above: set[int], seen: set[int]) -> Iterator[Problem]:
    """Yield a problem for each duplicate key of a mapping, and for each node that contains itself.

    `above`: ids of the enclosing collections, restored at the end; `seen`: ids of all collections
    visited, added to.
    """
    if id(node) in above:
        yield Problem(_position(node.start_mark), "holds an alias of itself; remove it")
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    above.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield from _twice(node)
    for item in node.value:
        yield from _repeats(item[1] if isinstance(item, tuple) else item, above, seen)
    above.remove(id(node))


def _twice(node: yaml.MappingNode) -> Iterator[Problem]:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        line = key.start_mark.line + 1
        if key.value in lines:
            message = f"duplicate key {shown_value(key.value)}, first in line {lines[key.value]}"
            yield Problem(_position(key.start_mark), message)
        lines.setdefault(key.value, line)


def _foreign(value: Any, place: str, key: str | int | None) -> Iterator[Problem]:
    """Yield a problem for each key or value in `value`, at any depth, that JSON cannot express.

    Such are dates, NaN, integers beyond 64 bits and lone surrogates. `place`: of `value` in the
    task; `key`: its key, by which secrets are masked.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(name, str) and not _SURROGATE.search(name):
                yield from _foreign(item, inside(place, name), name)
            else:
                yield Problem(
                    place, f"keys must be strings, got {shown_value(name)}: put it in quotes"
                )
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _foreign(item, inside(place, position), key)
    elif isinstance(value, int) and not _LEAST <= value <= _MOST:
        yield Problem(place, f"must be a number of 64 bits, got {shown_value(value, key)}")
    elif isinstance(value, str) and _SURROGATE.search(value):
        yield Problem(place, "must be text that UTF-8 can encode")
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(place, f"must be a finite number, got {value}")
    elif not isinstance(value, str | int | float | None):
        kind = type(value).__name__
        yield Problem(
            place,
            f"must be a JSON value, got the {kind} {shown_value(value, key)}: put it in quotes",
        )
