"""The command `web`: serves all runs of the data directory to a browser."""

from __future__ import annotations

import contextlib

import click

from osbench.common.config import logs
from osbench.common.network.address import Address
from osbench.coordinator.front.cli.base import CommandSettings, with_settings
from osbench.coordinator.front.cli.group import FILES
from osbench.coordinator.front.cli.live_view import announce
from osbench.coordinator.front.cli.options.option_table import option, options, repeated_option
from osbench.coordinator.front.cli.options.shared_options import archive_url
from osbench.coordinator.front.cli.run_views.damaged_runs import warn_of
from osbench.coordinator.front.web.access_tokens import AccessTokens
from osbench.coordinator.front.web.run_starts import RunStarts
from osbench.coordinator.front.web.runs_shown import RunsShown
from osbench.coordinator.front.web.web_server import WebServer
from osbench.coordinator.load.run.plan import new_run_id
from osbench.coordinator.results.storage.run_store import open_store


@click.command()
@options(
    listen=option(
        "--listen",
        metavar="ADDR:PORT",
        default="",
        help="Where to listen; default: 127.0.0.1:8089.",
    ),
    allow_host=repeated_option(
        "--allow-host",
        metavar="NAME",
        help="Another name by which browsers reach this server; may be repeated.",
    ),
    archive=archive_url(),
)
@with_settings
def web(
    settings: CommandSettings, listen: str, allow_host: tuple[str, ...], archive: str | None
) -> None:
    """Show the runs in a browser, until Ctrl-C.

    Runs that are going on are shown live and can be changed and aborted; of others the report is
    shown. Task files in the folder `tasks` of the data directory can be started, and runs be run
    again, one at a time; they go on when this command ends. The address that is printed contains a
    token, a new one each time; set OSBENCH_WEB_TOKEN to choose it, and OSBENCH_WEB_READ_TOKEN for
    a second token that only sees runs.

    \b
    Examples:
      osbench-coord web
      osbench-coord web --listen 127.0.0.1:9000
      osbench-coord web --archive s3://team-runs/shop
      osbench-coord web --listen 0.0.0.0:8089 --allow-host load.example.org
    """
    logs.begin(settings.conf.log_level)
    address = Address.parse(listen)
    data_dir = str(settings.conf.data_dir)
    there = None if archive is None else open_store(archive, data_dir, warn_of)
    if there is not None:
        # a wrong URL ends the command; later the page says what is wrong
        there.ids()
    shown, tokens = RunsShown(data_dir, archive=there), AccessTokens.from_environment()
    files: tuple[str, ...] = click.get_current_context().meta.get(FILES, ())
    options = [part for file in files for part in ("--config-file", file)]
    starts = RunStarts(data_dir, new_run_id, options)
    with WebServer(shown, tokens, address, allow_host, starts) as server:
        announce(server.token_url, address)
        # Ctrl-C is how it ends
        with contextlib.suppress(KeyboardInterrupt):
            server.wait()
