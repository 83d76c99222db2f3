"""Commands as `--help` lists them, and groups to which installed packages add commands."""

from __future__ import annotations

import importlib
from types import ModuleType

import click

from osbench.common.errors import PluginError
from osbench.common.machine.import_block import import_block
from osbench.coordinator.front.cli.group import Group

#: Headings of the commands in `osbench-coord --help`, in this order.
RUN = "Write and run tasks"
LOOK = "Look at runs"
COMPARE = "Compare runs"
SHARE = "Keep and share runs"
OPERATE = "Set up and operate"
OTHERS = "Other commands"
SECTIONS = (RUN, LOOK, COMPARE, SHARE, OPERATE, OTHERS)


class ListedCommand(click.Command):
    """A command with the first line of its help; `load` imports the rest.

    `place`: its definition, as `package.module:name`. `section`: its heading, of `SECTIONS`.
    """

    def __init__(self, name: str, line: str, *, place: str, section: str = OTHERS) -> None:
        super().__init__(name, short_help=line)
        self.section = section
        self._place = place

    def load(self) -> click.Command:
        """Import the command and return it."""
        module, _, name = self._place.partition(":")
        with import_block():
            found: click.Command = getattr(importlib.import_module(module), name)
        return found


class OpenGroup(Group):
    """A group of commands to which installed packages add theirs, as entry points of one kind.

    An entry point is a command of click, or a ListedCommand, whose imports `--help` does without.
    A package cannot replace a command of the group itself.
    """

    #: Kind of the entry points: `command` for the group `osbench.command`.
    kind = "command"

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted; reads metadata of packages."""
        return sorted({*self.commands, *_entry_points().names(self.kind)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or its ListedCommand, None if there is none; never fails."""
        try:
            return self._entry(cmd_name)
        except PluginError:
            return click.Command(cmd_name, short_help="Cannot be loaded; run it to see why.")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, imported command and remaining arguments of a command line.

        Raises click.NoSuchCommand if there is none, PluginError if it cannot be loaded.
        """
        try:
            name, _, rest = super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # click does not search commands of packages for similar names
            names = self.list_commands(ctx)
            raise click.NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None
        entry = None if name is None else self._entry(name)
        return name, entry.load() if isinstance(entry, ListedCommand) else entry, rest

    def _entry(self, name: str) -> click.Command | None:
        if name in self.commands or name not in _entry_points().names(self.kind):
            return self.commands.get(name)
        found: click.Command = _entry_points().load_object(self.kind, name)
        return found


def _entry_points() -> ModuleType:
    # commands of the group itself do without what it imports
    from osbench.common.plugin import entry_points  # noqa: PLC0415 - see above

    return entry_points
