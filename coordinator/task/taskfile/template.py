"""Renders Jinja2 templates of task files with the task arguments, within bounds."""

from __future__ import annotations

import math
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.loaders import split_template_path
from jinja2.sandbox import SandboxedEnvironment

from osbench.common.errors import Problem
from osbench.common.files.named_files import read_text
from osbench.common.secrets.masking import error_text
from osbench.coordinator.task.taskfile.template_bounds import (
    TemplateBoundError,
    bounded_resources,
    joined_text,
)

#: Longest product of a text or a list, and bits of the largest power.
_LENGTH = 1_000_000
_BITS = 4096

#: Statements that take another file.
_PARTS = (nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)

#: Filters that give an argument a default.
_DEFAULTS = ("default", "d")


def render(text: str, folder: str, args: Mapping[str, Any]) -> tuple[str, list[Problem]]:
    """Return the text rendered with `args`, and its problems; with a problem the result is "".

    `include` and `import` read files of `folder`. Problems are an argument without value or default
    (`{% set x = x or 1 %}`, `{{ x | default(1) }}`), errors of the template, and more CPU time,
    memory or output than `template_bounds` allows.
    """
    environment = _environment(folder)
    try:
        with bounded_resources():
            tree = environment.parse(text)
            missing = sorted(_missing(environment, tree, set(args), set()))
            if missing:
                return "", [Problem("", _please_give(missing))]
            return joined_text(environment.from_string(text).generate(**args)), []
    except TemplateBoundError as error:
        return "", [Problem("", f"template: {error}")]
    except jinja2.TemplateSyntaxError as error:
        return "", [Problem(_line(error.name, error.lineno), f"template: {error.message}")]
    except jinja2.TemplateNotFound as error:
        return "", [Problem("", f"template: there is no file {error.name!r} in {folder}")]
    except Exception as error:  # noqa: BLE001 - expressions of a template may raise anything
        said = str(error) if isinstance(error, _NotSetError) else error_text(error)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == "<template>"]
        place = _line(None, lines[-1]) if lines else ""
        return "", [Problem(place, f"template: {said}")]


def names(text: str, folder: str) -> frozenset[str] | None:
    """Return the names of the arguments that a template and its included files in `folder` use.

    None if they are unknown: a text cannot be read or parsed, or the name of a file is computed. A
    missing file counts as empty.
    """
    environment = _environment(folder)
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [text]
    while waiting:
        try:
            tree = environment.parse(waiting.pop())
            found |= _arguments(environment, tree)
        except (jinja2.TemplateSyntaxError, RecursionError):
            return None
        parts: list[Any] = [part.template for part in tree.find_all(_PARTS)]  # type: ignore[attr-defined]
        if any(not isinstance(part, nodes.Const) for part in parts):
            return None
        new = {str(part.value) for part in parts} - seen
        seen |= new
        try:
            waiting += [_source(environment, name) for name in new]
        except jinja2.TemplateError:
            return None
    return frozenset(found)


class _NotSetError(Exception):
    """Raised if a template reads an environment variable that is not set, without a default."""


class _FolderLoader(jinja2.FileSystemLoader):
    """Loads files up to a size limit: the folder of a template may have a pipe or a device."""

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Return the text of a file, its path, and a function that returns True: it is unchanged.

        Raises jinja2.TemplateNotFound, or TemplateError if the file cannot be read.
        """
        for folder in self.searchpath:
            path = Path(folder, *split_template_path(template))
            try:
                return read_text(path), str(path), lambda: True
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                continue
            except OSError as error:
                raise jinja2.TemplateError(
                    f"cannot read {path}: {error.strerror}; include a file that can be read"
                ) from None
            except UnicodeDecodeError:
                raise jinja2.TemplateError(
                    f"{path} is not text in UTF-8; save it in UTF-8"
                ) from None
            except ValueError:
                # a name that no file can have, such as one with a null character
                raise jinja2.TemplateNotFound(template) from None
        raise jinja2.TemplateNotFound(template)


class _BoundedEnvironment(SandboxedEnvironment):
    """A Jinja sandbox that refuses products and powers that would fill memory or take forever."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(
        self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any
    ) -> Any:
        """Compute a product or power of a template.

        Raises OverflowError beyond `_BITS` bits, or for a text or list longer than `_LENGTH`.
        """
        if operator == "**" and _bits(left) * abs(right) > _BITS:
            raise OverflowError("a power must have at most 4,096 bits; use smaller numbers")
        if operator == "*" and _bits(left) + _bits(right) > _BITS:
            raise OverflowError("a product must have at most 4,096 bits; use smaller numbers")
        if operator == "*":
            for one, times in ((left, right), (right, left)):
                if isinstance(one, (str, bytes, list, tuple)) and len(one) * times > _LENGTH:
                    raise OverflowError(f"a product must have at most {_LENGTH:,} items")
        return super().call_binop(context, operator, left, right)


def _bits(number: Any) -> int:
    return number.bit_length() if isinstance(number, int) else 0


def _environment(folder: str) -> jinja2.Environment:
    environment = _BoundedEnvironment(
        loader=_FolderLoader(folder),
        autoescape=False,  # a task is not HTML
    )
    environment.globals.update(min=min, max=max, ceil=_ceil, round=_round, env=_env)
    return environment


def _env(name: str, default: str | None = None) -> str:
    """Return the environment variable `name`, or `default` if it is not set.

    Raises _NotSetError if there is no default either.
    """
    value = os.environ.get(name, default)
    if value is None:
        raise _NotSetError(
            f"the environment variable {name} is not set: set it, or give a default,"
            f" as in env({name!r}, '...')"
        )
    return value


def _ceil(number: Any) -> int:
    return math.ceil(float(number))


def _round(number: Any) -> int:
    return round(float(number))


def _line(name: str | None, line: int | None) -> str:
    place = f"line {line}" if line else ""
    return f"{name}, {place}" if name else place


def _please_give(missing: list[str]) -> str:
    word = "argument" if len(missing) == 1 else "arguments"
    names = ", ".join(missing)
    example = ", ".join(f"{name}: ..." for name in missing)
    # YAML: a text with several names needs braces
    example = example if len(missing) == 1 else f"{{{example}}}"
    default = f"{{% set {missing[0]} = {missing[0]} or ... %}}"
    return (
        f"the template needs the task {word} {names}: give --task-args '{example}' or a file by"
        f" --task-args-file, or a default in the template: {default}"
    )


def _missing(
    environment: jinja2.Environment, tree: nodes.Template, given: set[str], seen: set[str]
) -> set[str]:
    """Return names of arguments without value or default in a template and its included files.

    `given`: names with a value. `seen`: names of files visited; added to. Raises
    jinja2.TemplateError if an included file cannot be read or parsed.
    """
    missing = _arguments(environment, tree) - given - _optional(tree)
    within = given | missing | _declared_names(tree)
    for name in _files(tree) - seen:
        seen.add(name)
        text = _source(environment, name)
        missing |= _missing(environment, environment.parse(text, name), within, seen)
    return missing


def _arguments(environment: jinja2.Environment, tree: nodes.Template) -> set[str]:
    """Return the arguments of the parsed template `tree`: names that it uses and does not define.

    Names of global functions, such as `min`, count only if the template uses them other than in
    calls.
    """
    called = {id(call.node) for call in tree.find_all(nodes.Call)}
    values = {name.name for name in tree.find_all(nodes.Name) if id(name) not in called}
    functions = (values & set(environment.globals)) - _declared_names(tree)
    return meta.find_undeclared_variables(tree) | functions


def _optional(tree: nodes.Template) -> set[str]:
    """Return the names for which a template has a default.

    That is: each use has one, or the name is assigned one, or the template tests whether it is
    defined.
    """
    named = {id(name): name.name for name in _defaulted_names(tree)}
    bare = {
        name.name
        for name in tree.find_all(nodes.Name)
        if name.ctx == "load" and id(name) not in named
    }
    replaced = {
        assign.target.name
        for assign in tree.find_all(nodes.Assign)
        if isinstance(assign.target, nodes.Name)
        and any(name.name == assign.target.name for name in _defaulted_names(assign))
    }
    asked = {
        test.node.name
        for test in tree.find_all(nodes.Test)
        if test.name in ("defined", "undefined") and isinstance(test.node, nodes.Name)
    }
    return (set(named.values()) - bare) | replaced | asked


def _defaulted_names(tree: nodes.Node) -> Iterator[nodes.Name]:
    """Yield the nodes of names with a default: in `name or ...` and `name | default(...)`."""
    for choice in tree.find_all(nodes.Or):
        if isinstance(choice.left, nodes.Name):
            yield choice.left
    for part in tree.find_all(nodes.Filter):
        if part.name in _DEFAULTS and isinstance(part.node, nodes.Name):
            yield part.node


def _declared_names(tree: nodes.Template) -> set[str]:
    """Return the names that a template defines: variables, macros and imported names."""
    names = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
    names |= {macro.name for macro in tree.find_all(nodes.Macro)}
    names |= {part.target for part in tree.find_all(nodes.Import)}
    for part in tree.find_all(nodes.FromImport):
        names |= {name if isinstance(name, str) else name[1] for name in part.names}
    return names


def _files(tree: nodes.Template) -> set[str]:
    parts = [part.template for part in tree.find_all(nodes.Include)]
    parts += [part.template for part in tree.find_all(nodes.Extends)]
    named = [name for part in parts for name in (part, *part.find_all(nodes.Const))]
    return {
        name.value
        for name in named
        if isinstance(name, nodes.Const) and isinstance(name.value, str)
    }


def _source(environment: jinja2.Environment, name: str) -> str:
    try:
        return environment.loader.get_source(environment, name)[0] if environment.loader else ""
    except jinja2.TemplateNotFound:
        return ""  # reported by `include` when rendering, unless it may be missing
