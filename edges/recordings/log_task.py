"""A task that replays an access log: a mix of its requests, and a file of their arrivals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import UsageError
from osbench.coordinator.formatting import count, plain, timestamp
from osbench.coordinator.task.taskfile.first_task import ADDRESS
from osbench.coordinator.task.taskfile.flow_task import (
    Computed,
    FlowTask,
    RecordingOptions,
    WrittenBranch,
    WrittenStep,
)
from osbench.edges.recordings.log_arrivals import (
    SortedArrivals,
    WrittenArrivals,
    write_arrivals,
)
from osbench.edges.recordings.log_formats import FIELDS
from osbench.edges.recordings.log_reader import LogReader
from osbench.edges.recordings.log_templates import (
    ID,
    OTHER,
    RequestTemplate,
    TemplateTable,
    merged_templates,
)
from osbench.edges.recordings.response_values import singular
from osbench.edges.recordings.secret_arguments import UnusedNames, argument_name, literal

Ints = NDArray[np.int64]

#: Methods that change nothing, and so are replayed unless all are asked for.
_SAFE = ("GET", "HEAD")
#: Templates of a task, at most: the ones with the most requests.
_MOST_BRANCHES = 500
#: Templates that the command names.
_NAMED = 10
_STATUSES = 600


def read_task(file: str, options: RecordingOptions) -> FlowTask:
    """Read an access log, write its arrivals to `options.arrivals`; return a task to replay it.

    The reader "access-log" for `init`. Raises UsageError if the log has no request to replay, a
    file cannot be read or written, or `options.log_fields` are wrong.
    """
    log = LogReader(Path(file), _fields(options.log_fields), options.progress)
    with closing(SortedArrivals(options.arrivals.parent)) as arrivals:
        found = _read_log(log, arrivals)
        branches = _Branches(found, all_methods=options.all_methods)
        if not branches.chosen:
            raise UsageError(_nothing(log, branches.left_out))
        names = [branch.name for branch in branches.chosen]
        try:
            made = write_arrivals(options.arrivals, arrivals, names, branches.positions)
        except OSError as error:
            folder = options.arrivals.parent
            raise UsageError(f"cannot write a file in {folder}: {error.strerror}") from None
    paths = [_RequestPath(branch.template) for branch in branches.chosen]
    return FlowTask(
        title="Load of an access log",
        origin=file,
        base=options.base or ADDRESS,
        branches=[
            WrittenBranch(name=branch.name, weight=branch.requests, steps=[_step(branch, path)])
            for branch, path in zip(branches.chosen, paths, strict=True)
        ],
        arguments={},
        left_out=branches.left_out,
        notes=list(_notes(log, made, paths, coarse=arrivals.coarse)),
        subtask="As it was",
        runner={"replay": {"file": options.arrivals.name, "timeout": "30s"}},
        found=list(_printed_lines(log, made, branches)),
    )


def _fields(given: Sequence[str]) -> dict[str, str]:
    """Return names of JSON fields by key of `FIELDS`, from values KEY=NAME of `--log-field`.

    Raises UsageError for a value of another form or an unknown key.
    """
    found = {}
    for text in given:
        key, mark, name = text.partition("=")
        if not mark or not name or key not in FIELDS:
            raise UsageError(
                f"--log-field needs one of {', '.join(FIELDS)}, = and the name of a field, as in"
                f" time=when; got {plain(text, 80)!r}"
            )
        found[key] = name
    return found


@dataclass(kw_only=True)
class _LogCounts:
    """Templates (method, path without ids) of a log's requests, and their counts by status."""

    table: TemplateTable = field(default_factory=TemplateTable)
    #: Requests by template and status: `_STATUSES` numbers for each template.
    counts: Counter[int] = field(default_factory=Counter)

    def add(self, codes: Ints, statuses: Ints) -> None:
        """Add requests to the counts; arrays with an element per request.

        `codes`: number of its template; `statuses`: its HTTP status, 0 if unknown.
        """
        pairs = codes * _STATUSES + np.minimum(statuses, _STATUSES - 1)
        found, counts = np.unique(pairs, return_counts=True)
        for pair, number in zip(found.tolist(), counts.tolist(), strict=True):
            self.counts[pair] += number


def _read_log(log: LogReader, arrivals: SortedArrivals) -> _LogCounts:
    counts = _LogCounts()
    try:
        for lines in log.read():
            if not lines.requests:
                continue
            codes = np.array(list(map(counts.table.__getitem__, lines.requests)), np.int64)
            counts.add(codes, np.array(lines.statuses, np.int64))
            arrivals.add(np.array(lines.times_us, np.int64), codes)
    except OSError as error:
        raise UsageError(
            f"{log.path}: no temporary file can be written next to the task: "
            f"{error.strerror or error}; free space there"
        ) from None
    return counts


@dataclass(frozen=True, kw_only=True)
class _Branch:
    """A template of requests that becomes a branch of the task: name and counts of its requests."""

    template: RequestTemplate
    name: str
    requests: int
    statuses: Counter[int]

    @property
    def expect(self) -> int | None:
        """Return the most frequent status of the requests if it is 400 or above; else None."""
        ((most, _),) = self.statuses.most_common(1)
        return most if most >= 400 else None


class _Branches:
    """The templates that become branches of the task (`chosen`), most requests first.

    At most `_MOST_BRANCHES`, and only GET and HEAD unless `all_methods` adds all but CONNECT.
    Requests of other templates are counted by reason in `left_out`.
    """

    def __init__(self, found: _LogCounts, *, all_methods: bool) -> None:
        templates = merged_templates(found.table.templates)
        numbers = {one: at for at, one in enumerate(dict.fromkeys(templates))}
        of = np.array([numbers[one] for one in templates], np.int64)
        statuses = [Counter[int]() for _ in numbers]
        for pair, number in found.counts.items():
            table_number, status = divmod(pair, _STATUSES)
            statuses[of[table_number]][status] += number
        totals = [one.total() for one in statuses]
        listed = list(numbers)
        self.methods = Counter[str]()
        self.left_out = Counter[str]()
        wanted = []
        for at, template in enumerate(listed):
            requests = totals[at]
            if at != OTHER:
                self.methods[template.method] += requests
            if not requests:
                continue
            if at == OTHER:
                self.left_out["requests of rare templates"] += requests
            elif template.parts[:1] != ("",):
                self.left_out["requests without a path"] += requests
            elif template.method in _SAFE or (all_methods and template.method != "CONNECT"):
                wanted.append(at)
            else:
                self.left_out[f"{template.method}, whose bodies are not in the log"] += requests
        wanted.sort(key=lambda at: -totals[at])
        for at in wanted[_MOST_BRANCHES:]:
            self.left_out["requests of rare templates"] += totals[at]
        unused = UnusedNames()
        self.chosen = [
            _Branch(
                template=listed[at],
                name=unused.of(listed[at].name),
                requests=totals[at],
                statuses=statuses[at],
            )
            for at in wanted[:_MOST_BRANCHES]
        ]
        places = np.full(len(listed), -1, np.int64)
        places[wanted[:_MOST_BRANCHES]] = np.arange(len(self.chosen))
        #: Positions of chosen templates by the numbers that lines have; -1 for those left out.
        self.positions: Ints = places[of]


class _RequestPath:
    """The path that a step requests, and the names of the task arguments in it.

    Ids in the template's path become task arguments with the default "1".
    """

    def __init__(self, template: RequestTemplate) -> None:
        self.arguments: list[str] = []
        words: list[str] = []
        text = ""
        for before, part in zip(("", *template.parts), template.parts, strict=False):
            if part == ID:
                name = argument_name(f"{singular(before) if before not in ('', ID) else 'item'}_id")
                self.arguments.append(name)
                words += [json.dumps(text), f'({name} or "1")']
                text = "/"
            else:
                text += f"{literal(part)}/"
        text = text.removesuffix("/") if len(template.parts) > 1 else "/"
        words += [json.dumps(text)] if text else []
        self.value: str | Computed = (
            Computed(f"({' ~ '.join(words)}) | tojson") if self.arguments else text or "/"
        )


def _step(branch: _Branch, path: _RequestPath) -> WrittenStep:
    keys: dict[str, Any] = {"name": branch.name}
    if branch.template.method != "GET":
        keys["method"] = branch.template.method
    keys["path"] = path.value
    if branch.expect is not None:
        keys["expect"] = branch.expect
    return WrittenStep(keys=keys)


def _notes(
    log: LogReader, made: WrittenArrivals, paths: Sequence[_RequestPath], *, coarse: bool
) -> Iterator[str]:
    yield f"{count(made.count, 'arrival')} from {timestamp(made.began_at)} on, {made.span_s:g} s."
    yield "Words in paths are as they were: read them before you pass this file on."
    if log.queries:
        yield f"Queries are left out ({count(log.queries, 'request')} had one): add query to steps."
    if coarse:
        yield "The log has whole seconds: arrivals are spread evenly within each."
    names = sorted({name for path in paths for name in path.arguments})
    if names:
        yield f"Ids in paths are 1; to give others: --task-args '{names[0]}: 7'"
        yield f"Such arguments are {', '.join(names)}."


def _printed_lines(log: LogReader, made: WrittenArrivals, branches: _Branches) -> Iterator[str]:
    """Yield the lines that the command prints on the log: format, methods, arrivals, templates.

    Of at most `_NAMED` templates it shows the percentage of requests and the name.
    """
    packed = ", gzip" if log.compressed else ""
    unread = ""
    if log.unreadable:
        unread = f", {log.unreadable:,} of them unreadable (line {log.first_unreadable:,} first)"
    yield f"{log.path}: {log.form}{packed}, {count(log.lines, 'line')}{unread}"
    methods = sum(branches.methods.values())
    said = (f"{name} {_share(part, methods)}" for name, part in branches.methods.most_common(8))
    yield f"methods: {', '.join(said)}"
    yield (
        f"arrivals: {made.count:,} in {made.span_s:g} s from {timestamp(made.began_at)},"
        f" {made.count / made.span_s:.3g}/s on average, {made.peak:,} in the busiest second"
    )
    for branch in branches.chosen[:_NAMED]:
        yield f"  {_share(branch.requests, made.count):>6}  {plain(branch.name, 100)}"
    rest = branches.chosen[_NAMED:]
    if rest:
        part = _share(sum(one.requests for one in rest), made.count)
        yield f"  {part:>6}  {count(len(rest), 'more template')}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _nothing(log: LogReader, left_out: Mapping[str, int]) -> str:
    said = ", ".join(f"{why} ({number:,})" for why, number in left_out.items())
    return (
        f"{log.path} has no request to replay; left out: {said or 'nothing'}. --all-methods adds"
        " requests that change data, with an empty body"
    )
