"""Options that are fields of dataclasses, and rules between them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from helpers.cli_commands import COMMANDS, command, commands_of
from helpers.readme import REPOSITORY, text
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    option_set,
    options,
    repeated_option,
)


@dataclass(frozen=True, kw_only=True)
class Drinks(OptionSet):
    """What is drunk."""

    SECTION = "Drinks"

    tea: bool = flag("--tea", "-t", help="Hot.")
    cups: int | None = option("--cups", type=click.IntRange(1), metavar="N", help="How many.")
    names: tuple[str, ...] = repeated_option("--name", help="Of whom.")


@dataclass(frozen=True, kw_only=True)
class Food(OptionSet):
    """What is eaten; a field is called like one of `Drinks`."""

    names: tuple[str, ...] = repeated_option("--dish", help="Of what.")
    salt: float = option("--salt", type=click.FLOAT, default=0.5, help="How much.")


RULES = (
    Alternatives(of=("TABLE", "--tea"), missing="nobody is served", single="either is enough"),
    Rule(option="--cups", why="counts tea", needs=("--tea", "--name"), remedy="order some"),
    Rule(option="--tea", why="is hot", excludes=("--salt", "--dish"), remedy="use sugar"),
)


@click.command(cls=RuledCommand, rules=RULES)
@click.argument("table", metavar="[TABLE]", required=False)
@option_set(Drinks, "drinks")
@option_set(Food, "food")
@options(loud=flag("--loud", help="Sing."))
def serve(table: str | None, drinks: Drinks, food: Food, loud: bool) -> None:
    click.echo(f"{table} {drinks} {food} {loud}")


def run(line: str) -> tuple[int, str]:
    done = CliRunner().invoke(Group(commands=[serve]), ["serve", *line.split()])
    return done.exit_code, done.output


def test_a_command_gets_its_options_as_one_value_for_each_set() -> None:
    code, said = run("4 --name Ann --name Bob --cups 2 --dish soup --salt 0.1 --loud")

    drinks = Drinks(tea=False, cups=2, names=("Ann", "Bob"))
    assert (code, said) == (0, f"4 {drinks} {Food(names=('soup',), salt=0.1)} True\n")


def test_what_is_not_given_is_as_in_the_dataclass() -> None:
    assert run("4") == (0, f"4 {Drinks()} {Food()} False\n")
    assert Drinks() == Drinks(tea=False, cups=None, names=())


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("", "nobody is served: give TABLE or --tea"),
        ("4 --tea", "TABLE and --tea cannot be combined: either is enough"),
        ("4 --cups 2", "--cups needs --tea or --name TEXT: it counts tea; order some"),
        ("-t --salt 0.5", "--salt cannot be combined with --tea, which is hot; use sugar"),
        (
            "-t --dish pie --salt 1",
            "--salt and --dish cannot be combined with --tea, which is hot; use sugar",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_its_reason(line: str, refusal: str) -> None:
    assert run(line) == (2, f"Error: {refusal}\n")


def test_a_default_does_not_count_as_given() -> None:
    assert run("--tea")[0] == 0
    # though it is the value of the default
    assert run("--tea --salt 0.5")[0] == 2


def test_help_has_a_section_for_each_set_and_one_for_the_others() -> None:
    code, said = run("--help")

    drinks, others = said.index("\nDrinks:\n"), said.index("\nOther options:\n")
    assert code == 0
    assert drinks < said.index("--cups N") < others < said.index("--salt") < said.index("--help")
    assert "\nOptions:\n" not in said


def test_options_are_declared_as_fields_only() -> None:
    folders = (REPOSITORY / "coordinator" / "front" / "cli", REPOSITORY / "edges")
    modules = [path for folder in folders for path in folder.rglob("*.py")]

    by_hand = {one.name for one in modules if "click.option(" in one.read_text("utf-8")}

    # the table itself, and the option that the list of commands takes before it is imported
    assert by_hand == {"option_table.py", "group.py"}


def test_the_example_for_contributors_is_that_of_the_code() -> None:
    section = text("docs/maintaining.md").partition("\n## Options of commands\n")[2]
    example = section.partition("```python\n")[2].partition("```")[0]

    folder = "coordinator/front/cli"
    code = text(f"{folder}/options/run_options.py") + text(f"{folder}/commands/run.py")
    assert [line for line in example.splitlines() if line not in code] == []
    assert "Rule(" in example
    assert '"--web cannot be combined with --repeat, which makes several runs"' in section.replace(
        "\n  ", " "
    )


def commands(found: click.Command) -> Iterator[click.Command]:
    """A command, or those of a group."""
    if isinstance(found, click.Group):
        for below in commands_of(found).values():
            yield from commands(below)
    yield found


EVERY = [one for name in COMMANDS for one in commands(command(name))]


@pytest.mark.parametrize("found", EVERY, ids=lambda one: str(one.name))
def test_rules_name_parameters_that_the_command_has(found: click.Command) -> None:
    rules = found.rules if isinstance(found, RuledCommand) else ()
    context = click.Context(found)

    had = {name for one in found.params for name in one.opts}
    had |= {one.make_metavar(context).strip("[].") for one in found.params}

    assert {name for rule in rules for name in rule.parameters} <= had


def test_a_command_is_written_for_the_sets_that_it_gets() -> None:
    sets: list[str] = []
    for found in EVERY:
        given = inspect.unwrap(found.callback) if found.callback else None
        hints = inspect.get_annotations(given, eval_str=True) if given else {}
        for name, hint in hints.items():
            if isinstance(hint, type) and issubclass(hint, OptionSet):
                sets.append(name)
                names = {f"{name}_{one.name}" for one in dataclasses.fields(hint)}
                assert names <= {one.name for one in found.params}, found.name

    assert len(sets) > 15
