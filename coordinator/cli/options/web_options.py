"""The options of `run` for its live view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from osbench.common.network.address import Address
from osbench.common.network.listen_address import is_listen_address
from osbench.coordinator.cli.options.option_rules import RuledCommand
from osbench.coordinator.cli.options.option_table import option
from osbench.coordinator.cli.options.shared_options import OutputOptions

#: The option, and what it means without a value.
WEB = "--web"
_DEFAULT = "default"


class WithWeb(RuledCommand):
    """A command whose `--web` takes what follows only if that is an address.

    Click would take a task file that follows for the option's value.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give `--web` its value."""
        return super().parse_args(ctx, _with_value(args))


def _with_value(args: Sequence[str]) -> list[str]:
    found: list[str] = []
    rest = list(args)
    while rest:
        one = rest.pop(0)
        if one == "--":
            return [*found, one, *rest]
        if one == WEB:
            address = rest and is_listen_address(rest[0])
            one = f"{WEB}={rest.pop(0) if address else _DEFAULT}"
        found.append(one)
    return found


class AddressType(click.ParamType[Address]):
    """Address of a server."""

    name = "address"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        """The address of a text. Raises UsageError."""
        return Address.parse("" if value == _DEFAULT else value)


@dataclass(frozen=True, kw_only=True)
class LiveOutputOptions(OutputOptions):
    """Output and live view of a run; for a command of class `WithWeb`."""

    web: Address | None = option(
        WEB,
        type=AddressType(),
        metavar="[ADDR:PORT]",
        help="Show the run in a browser while it goes on, by default at 127.0.0.1:8089.",
    )
    web_linger: bool | None = option(
        "--web-linger/--no-web-linger",
        type=click.BOOL,
        help="With --web: go on showing the report until Ctrl-C; the default on a terminal, where a"
        " browser was there.",
    )
