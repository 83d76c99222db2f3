"""Reads a seed file: a template in YAML, checked before the first request, all problems at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from osbench.common.errors import Problem, TaskError, UsageError
from osbench.coordinator.front.cli.options.task_options import warn_of_unused
from osbench.coordinator.task.taskfile.args import TaskArguments
from osbench.coordinator.task.taskfile.loading import TaskTemplate
from osbench.coordinator.task.taskfile.places import inside, shown_value
from osbench.coordinator.task.taskfile.schema.schema_errors import near, validate
from osbench.edges.openstack.common.resource_names import SEED_NAME
from osbench.edges.openstack.seeding.maker_table import MAKERS
from osbench.edges.openstack.seeding.seed_maker import SeedEntry, SeedMaker

#: Argument of the template that `--population` gives.
POPULATION = "population"
UNLIMITED = "unlimited"
_EXAMPLE = {"resources": [{"networks": 10}, {"ports": {"count": 100, "of": "networks"}}]}
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "quotas": {"enum": [UNLIMITED]},
        "resources": {"type": "array", "minItems": 1, "examples": [_EXAMPLE["resources"]]},
    },
    "required": ["resources"],
    "additionalProperties": False,
    "examples": [_EXAMPLE],
}
#: Keys of an entry that are not options of its kind.
_COMMON = ("count", "group", "of")


@dataclass(frozen=True, kw_only=True)
class SeedPlan:
    """A seed as its file describes it, checked."""

    #: Path of the file, for messages.
    source: str
    name: str
    entries: Sequence[SeedEntry]
    #: Quotas that would be too low are lifted.
    unlimited: bool = False

    @property
    def planned(self) -> int:
        """The number of all resources."""
        return sum(one.count for one in self.entries)


def read_seed(
    source: str,
    arguments: TaskArguments,
    population: int | None = None,
    name: str | None = None,
    *,
    for_removal: bool = False,
) -> SeedPlan:
    """Read, render and check a seed file; return its plan. Sends no request.

    `source`: path, or "-" for standard input. `population`: value of that argument, None if it is
    not given. `name`: replaces the name of the file. `for_removal`: counts are of no use, so
    `population` may be missing, and problems with them do not matter. Raises TaskError with all
    problems of the file, UsageError for arguments that it does not use, or if `name` is malformed.
    """
    template = TaskTemplate(source)
    names = template.names()
    values = dict(arguments.values)
    if population is not None:
        if names is not None and POPULATION not in names:
            raise UsageError(
                f"--population: {source} has no argument {POPULATION!r}; write a count as "
                f"{{{{ {POPULATION} }}}}, or leave the option out"
            )
        values[POPULATION] = population
    elif for_removal:
        values.setdefault(POPULATION, 0)
    warn_of_unused(arguments, [names])
    document = template.filled(values)
    if name is not None:
        check_name(name)
    plan, problems = _plan(document, source, name, for_removal=for_removal)
    if problems:
        raise TaskError(source, problems)
    return plan


def check_name(name: str | None) -> str:
    """Return `name`, of the command line. Raises UsageError unless it can be a seed's name."""
    if name is None:
        raise UsageError("no seed is given: give its file, or its name by --name")
    if wrong := _wrong_name(name):
        raise UsageError(f"--name: {wrong}")
    return name


def _wrong_name(name: str) -> str:
    if re.fullmatch(SEED_NAME, name):
        return ""
    return (
        "must be 1 to 24 small letters, digits, hyphens and underscores, with a letter or a digit "
        f"at both ends, got {shown_value(name)}"
    )


def _plan(
    document: Any, source: str, name: str | None, *, for_removal: bool
) -> tuple[SeedPlan, list[Problem]]:
    """Return the plan of a document and its problems; with a problem the plan is of no use."""
    problems = validate(document, _SCHEMA, "")
    content = document if isinstance(document, Mapping) else {}
    given = name or content.get("name", _default_name(source))
    if isinstance(given, str) and (wrong := _wrong_name(given)):
        place = "name" if "name" in content else ""
        prefix = (
            "" if place else "the name of the file is the name of the seed: write `name: ...`; it "
        )
        problems.append(Problem(place, prefix + wrong))
    listed = content.get("resources")
    entries: list[SeedEntry] = []
    for place, item in _items(listed if isinstance(listed, list) else []):
        entry, found = _entry(place, item)
        problems += found
        if entry is not None:
            entries.append(entry)
    if not problems and not for_removal:
        entries, problems = _checked_together(entries)
    unlimited = content.get("quotas") == UNLIMITED
    return SeedPlan(source=source, name=str(given), entries=entries, unlimited=unlimited), problems


def _checked_together(entries: list[SeedEntry]) -> tuple[list[SeedEntry], list[Problem]]:
    """Return the entries with the groups that they belong to, and problems between them."""
    problems = list(_clashes(entries))
    if not problems:
        entries, problems = _connect(entries)
    for entry in entries if not problems else ():
        problems += MAKERS[entry.word].problems(entry, entries)
    return entries, problems


def _default_name(source: str) -> str:
    return "seed" if source == "-" else Path(source).name.partition(".")[0]


def _items(listed: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for position, item in enumerate(listed):
        yield inside("resources", position), item


def _entry(place: str, item: Any) -> tuple[SeedEntry | None, list[Problem]]:
    """Return an entry of the list `resources`, with `of` as written, and its problems.

    With a problem the entry is None.
    """
    if not isinstance(item, Mapping) or len(item) != 1:
        message = f"must be one kind with its count, such as `ports: 100`, got {shown_value(item)}"
        if isinstance(item, Mapping) and len(item) > 1:
            message += ": begin an entry of the list for each, with a hyphen"
        return None, [Problem(place, message)]
    ((word, given),) = item.items()
    where = inside(place, word)
    if word not in MAKERS:
        return None, [Problem(where, f"unknown kind{near(word, MAKERS)}")]
    maker = MAKERS[word]
    if given is None and maker.ONE_EACH:
        given = {}
    if _is_number(given):
        given = {"count": given}
    if not isinstance(given, Mapping):
        message = f"must be a count or an object, got {shown_value(given)}"
        if isinstance(given, float):
            message += ": round it, as in {{ (population * 0.5) | int }}"
        return None, [Problem(where, f"{message}; an example: {{{word}: 100}}")]
    if problems := validate(given, maker.schema(), where):
        return None, problems
    entry = SeedEntry(
        place=where,
        word=word,
        group=given.get("group", maker.GROUP),
        # -1: as many as there are parents
        count=int(given.get("count", -1)),
        of=given.get("of", ""),
        options={key: value for key, value in given.items() if key not in _COMMON},
    )
    return entry, []


def _is_number(value: Any) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool)


def _clashes(entries: Sequence[SeedEntry]) -> Iterator[Problem]:
    """Yield a problem for each entry whose resources would have the names of an earlier entry's."""
    seen: Counter[str] = Counter()
    for entry in entries:
        if seen[entry.group]:
            yield Problem(
                entry.place,
                f"another entry has the group {entry.group!r}: give this one another by `group`, "
                f"such as `group: {entry.group}_{seen[entry.group] + 1}`",
            )
        seen[entry.group] += 1


def _connect(entries: Sequence[SeedEntry]) -> tuple[list[SeedEntry], list[Problem]]:
    """Return the entries with the group that each belongs to, and problems with `of`."""
    connected: list[SeedEntry] = []
    problems: list[Problem] = []
    for entry in entries:
        maker = MAKERS[entry.word]
        fitting = [one for one in connected if one.word in maker.PARENTS]
        parent, wrong = _parent(entry, maker, fitting)
        if wrong:
            problems.append(Problem(entry.place, wrong))
            continue
        count = entry.count if entry.count >= 0 else parent.count if parent else 0
        if parent and count and not parent.count:
            problems.append(Problem(entry.place, f"is of {parent.group}, of which there are none"))
        connected.append(replace(entry, of=parent.group if parent else "", count=count))
    return connected, problems


def _parent(
    entry: SeedEntry, maker: type[SeedMaker], fitting: Sequence[SeedEntry]
) -> tuple[SeedEntry | None, str]:
    """Return the entry that `entry` belongs to, None for none; and a message if it is not clear.

    `fitting`: earlier entries of the right kinds. `of` names a group of them, or a kind that only
    a single entry has. Without `of` it is the only one, if the kind needs one.
    """
    if not entry.of and not maker.NEEDS_PARENT:
        return None, ""
    found = [one for one in fitting if entry.of in (one.group, one.word, "")]
    if len(found) == 1:
        return found[0], ""
    kinds = " or ".join(maker.PARENTS)
    groups = ", ".join(one.group for one in fitting)
    if not fitting:
        return None, f"needs an entry of {kinds} above it, such as `{maker.PARENTS[0]}: 10`"
    if not found:
        return None, f"of: there are no {entry.of} above it{near(entry.of, groups.split(', '))}"
    return None, f"of: several entries are {kinds}: name the group of one, {groups}"
