"""Rules between the options of a command, as a table; and the command that enforces them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.options.option_table import SectionedOption

#: Sources of a parameter's value that mean that the user did not give it.
_NOT_GIVEN = (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
_OPTIONS = "Options"
_OTHERS = "Other options"


@dataclass(frozen=True, kw_only=True)
class Given:
    """The parameters of a command, by name, and the names that a command line gave.

    Names are long options, and arguments as in the usage.
    """

    #: All that the command has -> how they are written, with what they take.
    written: Mapping[str, str]
    #: The names that were given, in the order of their declaration.
    names: Sequence[str]

    @classmethod
    def of(cls, ctx: click.Context) -> Given:
        """Return a command's parameters, and the names that the user gave, without defaults."""
        named = {_name(one): one for one in ctx.command.params}
        return cls(
            written={name: _written_option(name, one, ctx) for name, one in named.items()},
            names=[
                name
                for name, one in named.items()
                if ctx.get_parameter_source(str(one.name)) not in _NOT_GIVEN
            ],
        )

    def of_these(self, names: Iterable[str]) -> list[str]:
        """Return the elements of `names` that were given, in the order of `names`."""
        return [one for one in names if one in self.names]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule on an option: it excludes other parameters, or needs another."""

    option: str
    #: Why, as a predicate of the option: "makes several runs".
    why: str
    #: None of these may be given with it.
    excludes: Sequence[str] = ()
    #: One of these has to be given with it.
    needs: Sequence[str] = ()
    #: What to do instead.
    remedy: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters in the rule: its option, excluded and needed ones."""
        return (self.option, *self.excludes, *self.needs)

    def refusal(self, given: Given) -> str:
        """Return why the rule refuses a command line, as a message; "" if it is allowed.

        The rule holds only if its option was given.
        """
        if self.option not in given.names:
            return ""
        if wrong := given.of_these(self.excludes):
            message = f"{_name_list(wrong)} cannot be combined with {self.option}, which {self.why}"
        elif self.needs and not given.of_these(self.needs):
            needed = _name_list([given.written[one] for one in self.needs], "or")
            message = f"{self.option} needs {needed}: it {self.why}"
        else:
            return ""
        return _with_remedy(message, self.remedy)


@dataclass(frozen=True, kw_only=True)
class Alternatives:
    """A rule on parameters of which one is needed, or at most one is allowed, or both."""

    of: Sequence[str]
    #: Begins the refusal of a command line that has none of them; "" if that is allowed.
    missing: str = ""
    #: Why no two of them go together; "" if they do.
    single: str = ""
    #: What to do instead.
    remedy: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters in the rule."""
        return tuple(self.of)

    def refusal(self, given: Given) -> str:
        """Return why the rule refuses a command line, as a message; "" if it is allowed."""
        found = given.of_these(self.of)
        if not found and self.missing:
            choices = _name_list([given.written[one] for one in self.of], "or")
            return _with_remedy(f"{self.missing}: give {choices}", self.remedy)
        if len(found) > 1 and self.single:
            return f"{_name_list(found)} cannot be combined: {self.single}"
        return ""


class RuledCommand(click.Command):
    """A command with sections in its help, and rules between its options."""

    def __init__(
        self, *args: Any, rules: Sequence[Rule | Alternatives] = (), **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.rules = rules

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and return its result.

        Raises UsageError if its options break a rule; the first broken rule counts.
        """
        given = Given.of(ctx)
        for rule in self.rules:
            if refusal := rule.refusal(given):
                raise UsageError(refusal)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section, in the order of their declaration; others at the end."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx) if isinstance(one, click.Option) else None
            if record is not None:
                section = one.section if isinstance(one, SectionedOption) else ""
                sections.setdefault(section, []).append(record)
        others = sections.pop("", [])
        for title, records in (*sections.items(), (_OTHERS if sections else _OPTIONS, others)):
            with formatter.section(title):
                formatter.write_dl(records)


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name.strip("[].")
    # the first long name: later ones are names in other tools
    return next((one for one in parameter.opts if one.startswith("--")), parameter.opts[0])


def _written_option(name: str, parameter: click.Parameter, ctx: click.Context) -> str:
    if isinstance(parameter, click.Option) and not parameter.is_flag:
        return f"{name} {parameter.make_metavar(ctx)}"
    return name


def _name_list(names: Sequence[str], word: str = "and") -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def _with_remedy(message: str, remedy: str) -> str:
    return f"{message}; {remedy}" if remedy else message
