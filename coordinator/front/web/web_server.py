"""The web server in a thread of the coordinator: a run goes on if the server fails."""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import uvicorn

from osbench.common.errors import OsbenchError
from osbench.common.network.address import Address
from osbench.common.network.connection_limits import BoundedConnection, Connections
from osbench.coordinator.front.web.access_tokens import AccessTokens
from osbench.coordinator.front.web.run_starts import RunStarts
from osbench.coordinator.front.web.runs_shown import RunsShown
from osbench.coordinator.front.web.web_app import WebApp

LOG = logging.getLogger(__name__)

#: Longest waits at its end, seconds: for the last documents, which this process makes; for clients
#: to read them; for the thread.
DOCUMENTS_S = 10.0
CLIENTS_S = 2
STOP_S = DOCUMENTS_S + CLIENTS_S + 3.0
#: Connections at once that wait or are served; beyond, the response is 503.
CONNECTIONS = 300


class WebServer:
    """The web server: serves HTTP in a daemon thread from `start` to `stop`; a context manager."""

    def __init__(
        self,
        shown: RunsShown,
        tokens: AccessTokens,
        address: Address,
        more_names: tuple[str, ...] = (),
        starts: RunStarts | None = None,
    ) -> None:
        """Bind the address and listen; requests are served after `start`.

        `more_names`: other names of this host, such as a proxy's. `starts`: starts runs from the
        page; None: the page starts none. Raises UsageError if it cannot listen.
        """
        self._socket = address.bind()
        self._tokens = tokens
        self._address = address
        names = address.names() | {name.lower() for name in more_names}
        self._app = WebApp(shown, tokens, names, starts)
        config = uvicorn.Config(
            self._app.asgi,
            loop="asyncio",
            http=cast("Any", partial(BoundedConnection, among=Connections())),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=CLIENTS_S,
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)

    @property
    def url(self) -> str:
        """Return the server's URL without a token; of this host if it listens on all addresses."""
        host, port = self._socket.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    @property
    def token_url(self) -> str:
        """Return the server's URL with the token that has all rights."""
        return f"{self.url}?token={self._tokens.token}"

    @property
    def was_seen(self) -> bool:
        """Return whether a client has requested the page of some run."""
        return self._app.was_seen

    def start(self) -> None:
        """Start the thread that serves requests; does not wait until it serves."""
        self._thread.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        etype: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Send the clients a last document, end the thread and close the socket.

        Waits at most `STOP_S` seconds; then the daemon thread is left behind.
        """
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), loop)
            self._thread.join(STOP_S)
        self._socket.close()

    def wait(self) -> None:
        """Block as long as the server runs; raise OsbenchError once it has ended by itself."""
        while self._thread.is_alive():
            self._thread.join(0.5)
        raise OsbenchError("the web server has ended by itself; start it again")

    async def _end(self) -> None:
        try:
            # streams must be ended explicitly, or the server waits for them
            await asyncio.wait_for(self._app.close(), DOCUMENTS_S)
        except TimeoutError:
            LOG.debug("streams were not ended in time")
        self._server.should_exit = True

    def _serve(self) -> None:
        try:
            asyncio.run(self._serving())
        except Exception:
            LOG.exception("the web server has ended; runs continue")

    async def _serving(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._socket])
