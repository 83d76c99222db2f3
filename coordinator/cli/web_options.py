"""The option `--web` of `run`, and what both web commands say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import click

from osbench.common.network.listen_address import is_listen_address
from osbench.coordinator.web.address import Address

#: The option, and what it means without a value.
WEB = "--web"
_DEFAULT = "default"


class WithWeb(click.Command):
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


def _parsed(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Address | None:
    if value is None:
        return None
    return Address.parse("" if value == _DEFAULT else value)


#: Adds `--web` to a command of class `WithWeb`.
web_option = click.option(
    WEB,
    "web",
    metavar="[ADDR:PORT]",
    callback=_parsed,
    help="Show the run in a browser while it goes on, by default at 127.0.0.1:8089.",
)


@contextlib.contextmanager
def live_view(address: Address | None, data_dir: str, run_id: str) -> Iterator[None]:
    """Serve a run for as long as it goes on; nothing without an address. Raises UsageError."""
    if address is None:
        yield
        return
    # takes 0.15 s and 20 MB, which runs without it do not need
    from osbench.coordinator.web.access_tokens import AccessTokens  # noqa: PLC0415
    from osbench.coordinator.web.runs_shown import RunsShown  # noqa: PLC0415
    from osbench.coordinator.web.web_server import WebServer  # noqa: PLC0415

    server = WebServer(RunsShown(data_dir, only=run_id), AccessTokens.from_environment(), address)
    announce(server.token_url, address)
    with server:
        yield


def announce(url: str, address: Address) -> None:
    """Print where a server is, with its token: nowhere else does that appear."""
    click.echo(f"live view: {url}", err=True)
    if not address.loopback:
        click.echo(
            "Warning: the live view is not encrypted and can be reached from other hosts; put a "
            "proxy with TLS before it, or use the default address and `ssh -L`",
            err=True,
        )
