"""Queries of counters in PromQL, with name and meaning: the defaults, or from a file of the user.

`$window` in a query stands for a duration of at least three scrapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from osbench.common.errors import UsageError
from osbench.common.files.named_files import read_text
from osbench.common.files.yaml_documents import load_yaml
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.results.accounting.counter_figures import SHARE_UNIT, CounterKind

#: Stands for a duration in queries.
WINDOW = "$window"

_MOST_QUERIES, _MOST_NAME, _MOST_QUERY, _MOST_UNIT = 100, 60, 4000, 20
_KEYS = ("name", "query", "kind", "unit", "host_label")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, kw_only=True)
class CounterQuery:
    """A query for one counter, with its name, kind and unit.

    A default, or from the user's file. Its result may have a series per host.
    """

    name: str
    #: PromQL.
    query: str
    kind: CounterKind = CounterKind.FLOW
    #: Unit of the values: `SHARE_UNIT`, "bytes/s", "/s" or any other text.
    unit: str = ""
    #: Label of the series whose value names the host.
    host_label: str = "instance"


def read_queries(path: Path) -> tuple[CounterQuery, ...]:
    """Read queries from a YAML file: a list of 1 to 100 mappings.

    Raises UsageError if the file cannot be read or is not such a list, or with all problems of its
    entries.
    """
    try:
        found = load_yaml(read_text(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise UsageError(
            f"[metrics] queries: cannot read {path}: {reason}; give a readable file in UTF-8"
        ) from None
    except yaml.YAMLError as error:
        raise UsageError(
            f"[metrics] queries: {path} is not YAML: {plain(str(error))}; correct it there"
        ) from None
    if not isinstance(found, list) or not found or len(found) > _MOST_QUERIES:
        raise UsageError(
            f"[metrics] queries: {path} must be a list of 1 to {_MOST_QUERIES} queries, each with"
            " `name` and `query`"
        )
    problems = [
        f"{path}, entry {at}: {problem}"
        for at, one in enumerate(found, 1)
        for problem in _problems(one)
    ]
    names = [str(one.get("name")) for one in found if isinstance(one, Mapping)]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems += [f"{path}: the name {plain(name)!r} is given twice" for name in twice]
    if problems:
        lines = "\n".join(f"  {line}" for line in problems)
        raise UsageError(
            f"[metrics] queries: {count(len(problems), 'problem')} to correct\n{lines}"
        )
    return tuple(_query(one) for one in found)


def _problems(entry: Any) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield "must be a mapping with `name` and `query`"
        return
    for key in entry:
        if key not in _KEYS:
            yield f"unknown key {plain(str(key))!r}; there are {', '.join(_KEYS)}"
    for key, most in (("name", _MOST_NAME), ("query", _MOST_QUERY)):
        value = entry.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            yield f"`{key}` must be a text of 1 to {most:,} characters"
    if entry.get("kind", CounterKind.FLOW) not in list(CounterKind):
        yield f"`kind` must be one of {', '.join(CounterKind)}"
    unit = entry.get("unit", "")
    if not isinstance(unit, str) or len(unit) > _MOST_UNIT:
        yield f"`unit` must be a text of at most {_MOST_UNIT} characters"
    label = entry.get("host_label", "instance")
    if not isinstance(label, str) or not _LABEL.match(label):
        yield "`host_label` must be the name of a label"


def _query(entry: Mapping[str, Any]) -> CounterQuery:
    kind = CounterKind(entry.get("kind", CounterKind.FLOW))
    return CounterQuery(
        name=entry["name"].strip(),
        query=entry["query"].strip(),
        kind=kind,
        unit=SHARE_UNIT if kind is CounterKind.SHARE else entry.get("unit", ""),
        host_label=entry.get("host_label", "instance"),
    )
