"""The web server of `run --web`: shows the run while it goes on, then its report for a while."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from osbench.common.network.address import Address
from osbench.coordinator.front.cli.base import echo

if TYPE_CHECKING:
    from osbench.coordinator.front.web.web_server import WebServer


class LiveView:
    """Serves one run in a browser, during the run and after it; does nothing without an address."""

    def __init__(self, address: Address | None, *, linger: bool | None = None) -> None:
        """`linger`: whether the report stays after the run, until Ctrl-C.

        None: it stays if stdin and stderr are a terminal and a browser has looked at it.
        """
        self._address = address
        self._asked = linger
        self._server: WebServer | None = None

    @property
    def wanted(self) -> bool:
        """Return whether there is an address to serve runs at."""
        return self._address is not None

    @property
    def _stays(self) -> bool:
        if self._asked is None:
            return sys.stdin.isatty() and sys.stderr.isatty()
        return self._asked

    def begin(self, data_dir: str, run_id: str) -> None:
        """Start to serve a run, and print the address with its token to stderr.

        Does nothing without an address. Raises UsageError if it, or a token, cannot be used.
        """
        if self._address is None:
            return
        # takes 0.15 s and 20 MB, which runs without it do not need
        from osbench.coordinator.front.web.access_tokens import AccessTokens  # noqa: PLC0415
        from osbench.coordinator.front.web.runs_shown import RunsShown  # noqa: PLC0415
        from osbench.coordinator.front.web.web_server import WebServer  # noqa: PLC0415

        shown = RunsShown(data_dir, only=run_id, stays=self._stays)
        self._server = WebServer(shown, AccessTokens.from_environment(), self._address)
        announce(self._server.token_url, self._address)
        self._server.start()

    def linger(self) -> None:
        """Show the report until Ctrl-C, if `linger` of the constructor says so; else do nothing.

        Prints the address to stderr. Raises OsbenchError if the server ends by itself.
        """
        server = self._server
        if server is None or not self._stays or not (server.was_seen or self._asked):
            return
        echo(f"the report stays at {server.url} until Ctrl-C", err=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            return

    def end(self) -> None:
        """Send the browsers a last state, and end the server, if it was started."""
        if self._server is not None:
            self._server.stop()


def announce(url: str, address: Address) -> None:
    """Print the address of a server with its token to stderr; the token appears nowhere else.

    Also warns if other hosts can reach the address.
    """
    echo(f"live view: {url}", err=True)
    if not address.loopback:
        echo(
            "Warning: the live view is not encrypted and can be reached from other hosts; put a "
            "proxy with TLS before it, or use the default address and `ssh -L`",
            err=True,
        )
