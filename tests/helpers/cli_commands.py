"""The commands of osbench-coord, imported, with those of installed packages."""

from __future__ import annotations

import click

from osbench.coordinator.front.cli import main


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group, by name."""
    context = click.Context(group)
    names = dict.fromkeys((*group.commands, *group.list_commands(context)))
    named = [group.resolve_command(context, [name]) for name in names]
    return {name: found for name, found, _ in named if name is not None and found is not None}


def command(name: str) -> click.Command:
    """A command of osbench-coord."""
    _, found, _ = main.resolve_command(click.Context(main), [name])
    assert found is not None
    return found


#: Names of the commands of osbench-coord.
COMMANDS = main.list_commands(click.Context(main))
