"""A task with `HttpFlow.run` made from a recording, and its text, which is meant to be edited.

Readers of recordings, such as HAR files, are entry points `osbench.recording`.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osbench.common.plugin import entry_points
from osbench.coordinator.task.taskfile.task_yaml import JINJA, task_yaml

#: Seconds that an iteration may take beyond its think times.
_TIMEOUT_S = 30
#: Hosts whose requests were left out that are named.
_NAMED = 12
#: Characters that names of steps do not have.
_ODD = re.compile(r"[^\w ./:+@~,\[\]-]")


#: Texts in an expression, and what else may be a name.
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class Computed:
    """A value that is written to the task file as a Jinja expression in braces."""

    #: The expression, without its braces.
    source: str


@dataclass(kw_only=True)
class WrittenStep:
    """A step of the flow, one HTTP request, with notes that are written as comments above it."""

    #: As `HttpFlow.run` takes them; None: only the notes are written.
    keys: dict[str, Any] | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class WrittenBranch:
    """A branch of a mix: steps that an iteration runs if the branch is chosen, by weight."""

    name: str
    weight: int
    steps: Sequence[WrittenStep]
    notes: Sequence[str] = ()
    #: Written as a comment of Jinja, so that its arguments are not asked for.
    off: bool = False


@dataclass(frozen=True, kw_only=True)
class FlowTask:
    """The content of a task file made from a recording: either steps, or branches of a mix."""

    title: str
    #: The file that it is made of.
    origin: str
    base: str
    steps: Sequence[WrittenStep] = ()
    branches: Sequence[WrittenBranch] = ()
    #: What to give as task arguments, by name.
    arguments: Mapping[str, str]
    left_out: Counter[str]
    notes: Sequence[str] = ()
    #: Of the subtask.
    subtask: str = "One virtual user"
    #: None: ten iterations of one virtual user.
    runner: Mapping[str, Any] | None = None
    #: Lines that the command prints about the recording.
    found: Sequence[str] = ()

    def made(self) -> int:
        """Return the number of HTTP requests that the task has as steps.

        Requests in commented-out branches do not count.
        """
        more = [step for branch in self.branches if not branch.off for step in branch.steps]
        return sum(len(one.keys.get("parallel", [one])) for one in (*self.steps, *more) if one.keys)

    def omissions(self) -> str:
        """Return the reasons why requests of the recording are not in the task, with counts.

        A text with commas, most frequent first; beyond `_NAMED` reasons only their number. "" if
        none.
        """
        most = self.left_out.most_common(_NAMED)
        rest = len(self.left_out) - len(most)
        said = [f"{_words(why)} ({count})" for why, count in most]
        return ", ".join([*said, f"{rest} more reasons"] if rest > 0 else said)

    def check_command(self, file: str) -> str:
        """Return the command line that validates the task in the file named `file`.

        It contains --task-args with "..." for each needed argument.
        """
        given = ", ".join(f"{name}: ..." for name in self.needed())
        return f"osbench-coord validate {file}" + (f" --task-args '{{{given}}}'" if given else "")

    def needed(self) -> list[str]:
        """Return the names of the task arguments that the task uses, in order of `arguments`.

        Arguments used only in commented-out branches are left out.
        """
        steps = [step for branch in self.branches if not branch.off for step in branch.steps]
        return self.arguments_of([*self.steps, *steps])

    def arguments_of(self, steps: Sequence[WrittenStep]) -> list[str]:
        """Return the names of the task arguments that `steps` use, in order of `arguments`."""
        sources = [one for step in steps for one in _sources(step.keys)]
        words = {word for source in sources for word in _NAME.findall(_TEXT.sub("", source))}
        return [name for name in self.arguments if name in words]


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """Options of `init` for a recording: its requests to take, its fields, the file to write.

    Each form of recording uses only some of them.
    """

    #: Their hosts; empty: the host of the page.
    hosts: Sequence[str] = ()
    #: Also images, fonts, styles and scripts.
    assets: bool = False
    #: Base URL of the requests; "" for that of the recording, if known.
    base: str = ""
    #: Also methods that change data.
    all_methods: bool = False
    #: Names of fields, as `KEY=NAME`.
    log_fields: Sequence[str] = ()
    #: The file of arrivals to write.
    arrivals: Path = Path("task.arrivals")
    #: Takes bytes read of the file, its size, and lines read, again and again.
    progress: Callable[[int, int, int], None] | None = None


#: Reads the file at a path; raises UsageError if there is no task in it.
RecordingReader = Callable[[str, RecordingOptions], FlowTask]


def read_recording(form: str, path: str, options: RecordingOptions) -> FlowTask:
    """Read the recording at `path` and return its task.

    `form` is the name of the reader, such as "har": an entry point `osbench.recording`. Raises
    UsageError if the file has no task, PluginError if there is no such reader.
    """
    reader: RecordingReader = entry_points.load_object("recording", form)
    return reader(path, options)


def _sources(value: Any) -> Iterator[str]:
    if isinstance(value, Computed):
        yield value.source
    for inner in value.values() if isinstance(value, dict) else ():
        yield from _sources(inner)
    for inner in value if isinstance(value, list) else ():
        yield from _sources(inner)


def _words(why: str) -> str:
    """Return a reason why requests were left out as part of the list of `omissions`.

    Cut to 100 characters; unprintable ones become "_". A reason such as "of the host X" becomes
    "requests of the host X".
    """
    shown = "".join(c if c.isprintable() else "_" for c in _encodable(why))[:100]
    return f"requests {shown}" if shown.startswith(("of the", "without", "answered")) else shown


def step_name(method: str, path: str) -> str:
    """Return the name of a step: method and path, such as "GET /orders".

    Characters of the path other than letters, digits, spaces and some punctuation become
    underscores; it is cut to 120 characters.
    """
    return f"{method} {_ODD.sub('_', path)[:120] or '/'}"


def flow_task_text(task: FlowTask, file: str) -> str:
    """Return the text of a task file for `task`: YAML with comments and Jinja expressions.

    `file`: its name, for the command in its comments. Nothing is written to disk.
    """
    think_s = sum(step.keys.get("think", 0) for step in task.steps if step.keys is not None)
    few = {"times": 10, "concurrency": 1, "timeout": f"{math.ceil(_TIMEOUT_S + think_s)}s"}
    ((runner, config),) = (task.runner or {"constant": few}).items()
    keys = ", ".join(f"{key}: {_inline(value)}" for key, value in config.items())
    lines = [
        *_head(task, file),
        "version: 2",
        *_yaml_lines({"title": task.title}),
        "subtasks:",
        *_indented_lines(_yaml_lines([{"title": task.subtask}]), 2),
        "    scenario:",
        "      HttpFlow.run:",
        "        # to another place: --task-args 'base: http://127.0.0.1:8080'",
        *_indented_lines(
            _yaml_lines({"base": Computed(f"(base or {json.dumps(task.base)}) | tojson")}), 8
        ),
        *(["        steps:"] if task.steps else []),
        *_indented_lines(_steps(task.steps), 10),
        *(["        mix:"] if task.branches else []),
        *_indented_lines(_branches(task), 10),
        "    runner:",
        f"      {runner}: {{{keys}}}",
        "    sla:",
        "      failure_rate: {max: 0}",
    ]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    """Return an integer or a string as YAML on one line, in quotes unless it is a plain word.

    Braces that Jinja would read become underscores.
    """
    plain = isinstance(value, int) or re.fullmatch(r"[A-Za-z0-9_][\w.-]*", value)
    return str(value) if plain else json.dumps(JINJA.sub("_", value), ensure_ascii=False)


def _head(task: FlowTask, file: str) -> Iterator[str]:
    yield from _comment(f"Made of {Path(task.origin).name} by `osbench-coord init`. Check it with")
    yield from _comment(f"  {task.check_command(Path(file).name)}")
    for name in task.needed():
        yield from _comment(f"task argument {name}: {task.arguments[name]}")
    if omitted := task.omissions():
        yield from _comment(f"Left out: {omitted}.")
    for note in task.notes:
        yield from _comment(note)


def _comment(text: str) -> Iterator[str]:
    """Yield one line: the text as a YAML comment.

    Unprintable characters become spaces, braces that Jinja would read underscores.
    """
    shown = "".join(c if c.isprintable() else " " for c in _encodable(text))
    yield f"# {JINJA.sub('_', shown)}"


def _steps(steps: Sequence[WrittenStep]) -> Iterator[str]:
    for step in steps:
        for note in step.notes:
            yield from _comment(note)
        if step.keys is not None:
            yield from _yaml_lines([step.keys])


def _branches(task: FlowTask) -> Iterator[str]:
    known = task.needed()
    for branch in task.branches:
        for note in branch.notes:
            yield from _comment(note)
        more = [name for name in task.arguments_of(branch.steps) if name not in known]
        if branch.off and more:
            yield from _comment(f"They take further task arguments: {', '.join(more)}")
        lines = [
            *_yaml_lines([{"name": branch.name, "weight": branch.weight}]),
            "  steps:",
            *_indented_lines(_steps(branch.steps), 4),
        ]
        yield from ("{#", *lines, "#}") if branch.off else lines


def _indented_lines(lines: Iterator[str], by: int) -> Iterator[str]:
    yield from (f"{' ' * by}{line}" if line else "" for line in lines)


def _yaml_lines(value: Any) -> Iterator[str]:
    """Yield the lines of `value` as YAML; each `Computed` becomes a Jinja expression in braces."""
    computed: dict[str, str] = {}
    mark = f"computed{secrets.token_hex(12)}"
    text = task_yaml(_mark_computed(value, mark, computed))
    text = re.sub(rf"{mark}x\d+x", lambda word: f"{{{{ {computed[word.group()]} }}}}", text)
    yield from text.removesuffix("\n").split("\n")


def _mark_computed(value: Any, mark: str, computed: dict[str, str]) -> Any:
    """Return a copy of `value` with each `Computed` replaced by a unique word, at any depth.

    Adds word -> source of the expression to `computed`. `mark`: prefix of these words. Lone
    surrogates in texts become "?".
    """
    if isinstance(value, Computed):
        word = f"{mark}x{len(computed)}x"
        computed[word] = _encodable(value.source)
        return word
    if isinstance(value, dict):
        return {_encodable(k): _mark_computed(inner, mark, computed) for k, inner in value.items()}
    if isinstance(value, list):
        return [_mark_computed(inner, mark, computed) for inner in value]
    return _encodable(value) if isinstance(value, str) else value


def _encodable(text: str) -> str:
    """Return the text with "?" for each lone surrogate, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
