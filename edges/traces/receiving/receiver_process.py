"""The process that receives spans: started by the coordinator, so that load never waits for it.

It reads a line of JSON from its standard input, `ReceiverTask`, then commands, a line each, and
replies to each with a line of JSON: `stop storing` refuses further spans, `counts` only asks. It
ends when its standard input does, and so with the coordinator.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn

from osbench.common.network.connection_limits import BoundedConnection, Connections
from osbench.edges.traces.receiving.intake_of_spans import SpanIntake
from osbench.edges.traces.receiving.otlp_application import OtlpApplication
from osbench.edges.traces.receiving.receiver_task import ReceiverTask

#: Seconds between two writes of received spans.
FLUSH_S = 2.0
#: Connections at once; beyond, it responds with 503, after which SDKs send again.
CONNECTIONS = 300
#: Longest wait at its end for requests in progress, seconds.
CLIENTS_S = 1


class _QuietServer(uvicorn.Server):
    """An HTTP server that leaves signals alone: the coordinator decides when it ends."""

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override] # as its base
        """Return a context that does nothing: uvicorn's would install signal handlers."""
        return contextlib.nullcontext()


async def receive(task: ReceiverTask, listener: socket.socket) -> None:
    """Serve on `listener` until the standard input ends, then write all spans to the spool.

    Writes "ready" to the standard output, and a reply to each command. Raises OSError, ssl.SSLError
    if the spool or the certificate cannot be used.
    """
    intake = SpanIntake(task.run_id, Path(task.path), task.limit_bytes, everything=task.everything)
    application = OtlpApplication(intake, task.token)
    config = uvicorn.Config(
        cast("Any", application),
        loop="asyncio",
        http=cast("Any", partial(BoundedConnection, among=Connections())),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=CLIENTS_S,
        ssl_certfile=task.certificate or None,
        ssl_keyfile=task.key or None,
    )
    config.load()
    server = _QuietServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    flushing = asyncio.create_task(_keep_flushing(application, intake))
    _say({"ready": True})
    try:
        await _commands(application, intake)
    finally:
        flushing.cancel()
        server.should_exit = True
        await serving
        await application.run(intake.flush)


async def _commands(application: OtlpApplication, intake: SpanIntake) -> None:
    loop = asyncio.get_running_loop()
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        if line == "stop storing":
            await application.run(intake.stop_storing)
        _say({**intake.counts.to_dict(), "failure": intake.failure})


async def _keep_flushing(application: OtlpApplication, intake: SpanIntake) -> None:
    while True:
        await asyncio.sleep(FLUSH_S)
        await application.run(intake.flush)


def _say(response: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(response) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the receiver process until its standard input ends.

    Its first line has the settings, a `ReceiverTask` as JSON. The only argument is the descriptor
    of the listening socket. An OSError or ssl.SSLError is written to the standard output as a
    reply.
    """
    task = ReceiverTask(**json.loads(sys.stdin.readline()))
    try:
        asyncio.run(receive(task, socket.socket(fileno=int(sys.argv[1]))))
    except (OSError, ssl.SSLError) as error:
        _say({"error": f"{getattr(error, 'strerror', None) or error}"})


if __name__ == "__main__":
    main()
