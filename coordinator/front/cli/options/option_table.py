"""Options as fields of a frozen dataclass: name, type and help of each stand in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar, overload

import click

T = TypeVar("T")
R = TypeVar("R")

#: Key of a field's metadata: its names on the command line, and the other arguments of click.
_OPTION = "osbench.option"


@dataclass(frozen=True, kw_only=True)
class OptionSet:
    """Base of sets of options that a command gets as one value; each field is an option.

    Fields are made by functions such as `option` and `flag`. A subclass adds fields to its base.
    """

    #: Heading of these options in `--help`; those without one come last.
    SECTION: ClassVar[str] = ""


class SectionedOption(click.Option):
    """A click option with the name of the section of `--help` in which it is listed."""

    def __init__(self, *args: Any, section: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


def flag(*names: str, help: str) -> bool:
    """Return a dataclass field for an option without a value: True if it is given, else False."""
    return _field(names, False, help=help, is_flag=True)


def repeated_option(*names: str, help: str, metavar: str | None = None) -> tuple[str, ...]:
    """Return a dataclass field for an option that may be given several times.

    Its value is a tuple, () if the option is not given.
    """
    return _field(names, (), help=help, metavar=metavar, multiple=True)


@overload
def option(*names: str, type: click.ParamType[T], default: T, **settings: Any) -> T: ...
@overload
def option(*names: str, type: click.ParamType[T], **settings: Any) -> T | None: ...
@overload
def option(*names: str, default: str, **settings: Any) -> str: ...
@overload
def option(*names: str, **settings: Any) -> str | None: ...
def option(*names: str, default: Any = None, **settings: Any) -> Any:
    """Return a dataclass field for an option with one value; `settings` go to `click.option`."""
    return _field(names, default, **settings)


def file_option(*names: str, help: str, metavar: str = "FILE") -> Path | None:
    """Return a dataclass field for an option whose value is the path of a file, or None."""
    return _field(
        names, None, help=help, metavar=metavar, type=click.Path(dir_okay=False, path_type=Path)
    )


def _field(names: tuple[str, ...], default: T, **settings: Any) -> T:
    return field(default=default, metadata={_OPTION: (names, settings)})


def option_set(kind: type[OptionSet], name: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a command: it gets the options of the set `kind` as one argument called `name`.

    That argument is an instance of `kind`.
    """
    # sets of one command may have fields of the same name
    declared = {f"{name}_{one.name}": one for one in fields(kind)}

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(command)
        def collected(*args: Any, **given: Any) -> R:
            values = {one.name: given.pop(parameter) for parameter, one in declared.items()}
            return command(*args, **{name: kind(**values)}, **given)

        return _with_options(collected, declared, kind.SECTION)

    return decorate


def options(
    section: str = "", /, **declared: Any
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorate a command: it gets each option in `declared` as an argument of its name.

    `declared`: fields made by `option`, `flag` or `repeated_option`. `section`: heading of the
    options in `--help`.
    """
    return lambda command: _with_options(command, declared, section)


def _with_options(
    command: Callable[..., R], declared: dict[str, Field[Any]], section: str
) -> Callable[..., R]:
    for parameter, one in reversed(declared.items()):
        names, settings = one.metadata[_OPTION]
        # with a default, even None, click misses no option
        default = {} if settings.get("required") else {"default": one.default}
        command = click.option(
            *names,
            parameter,
            cls=SectionedOption,
            section=section,
            **default,
            **settings,
        )(command)
    return command
