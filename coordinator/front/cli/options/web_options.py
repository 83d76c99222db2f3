"""Options of `run` with an address: the live view, and the sources of spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from osbench.common.network.address import Address
from osbench.common.network.backend_url import parse_backend_url
from osbench.common.network.listen_address import is_listen_address, parse_listen_address
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import option
from osbench.coordinator.front.cli.options.shared_options import OutputOptions

#: The options, and what they mean without a value.
WEB, OTLP = "--web", "--otlp"
_DEFAULT = "default"
_DEFAULTS = {WEB: _DEFAULT, OTLP: "127.0.0.1:4318"}


class WithWeb(RuledCommand):
    """A command whose `--web` and `--otlp` take the next argument only if it is an address.

    Click would take a task file that follows for the option's value.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, after giving `--web` and `--otlp` an address or their default."""
        return super().parse_args(ctx, _with_value(args))


def _with_value(args: Sequence[str]) -> list[str]:
    found: list[str] = []
    rest = list(args)
    while rest:
        one = rest.pop(0)
        if one == "--":
            return [*found, one, *rest]
        if one in _DEFAULTS:
            address = rest and is_listen_address(rest[0])
            one = f"{one}={rest.pop(0) if address else _DEFAULTS[one]}"
        found.append(one)
    return found


class AddressType(click.ParamType[Address]):
    """The address of a web server on the command line: ADDR:PORT."""

    name = "address"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        """Convert a string to an address, the value of a bare `--web` to the default address.

        Raises UsageError if it is not an address.
        """
        return Address.parse("" if value == _DEFAULT else value)


class ListenAddress(click.ParamType[str]):
    """An address to listen at, [ADDR:]PORT, on the command line; checked and kept as text."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the string unchanged. Raises UsageError if it is not an address."""
        parse_listen_address(value)
        return str(value)


class BackendUrl(click.ParamType[str]):
    """A URL at which traces are queried, on the command line; checked and kept as text."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the string unchanged. Raises UsageError if it is not a URL of Tempo or Jaeger."""
        parse_backend_url(value)
        return str(value)


@dataclass(frozen=True, kw_only=True)
class LiveOutputOptions(OutputOptions):
    """Options for output and live view of a run, for a command of class `WithWeb`."""

    web: Address | None = option(
        WEB,
        type=AddressType(),
        metavar="[ADDR:PORT]",
        help="Show the run live in a browser, by default at 127.0.0.1:8089.",
    )
    web_linger: bool | None = option(
        "--web-linger/--no-web-linger",
        type=click.BOOL,
        help="With --web: show the report until Ctrl-C. Default: only on a terminal, if a browser"
        " was connected.",
    )
