"""A scenario with WebSockets, by the library websocket-client: see docs/protocols.md."""

from __future__ import annotations

import websocket

from osbench.plugin import atomic, scenario

#: Longest wait for the server, seconds, if the workload sets no timeout.
TIMEOUT_S = 30.0


class WrongEchoError(Exception):
    """A message came back changed."""


class Talker(scenario.Scenario):
    """Scenarios with the echo server of samples/websocket/server.py."""

    @scenario.configure(name="Talker.talk")
    def talk(self, url: str, messages: int = 5) -> None:
        """Connect, send messages, each after the echo of the one before, and close."""
        with atomic.ActionTimer(self, "connect"):
            connection = websocket.create_connection(
                url,
                timeout=self.context["timeout_s"] or TIMEOUT_S,
                # the trace of this iteration, for services that read it
                header=self.trace_headers(),
            )
        try:
            for number in range(messages):
                self._echo(connection, f"message {number}")
        finally:
            with atomic.ActionTimer(self, "close"):
                connection.close()

    @atomic.action_timer("echo")
    def _echo(self, connection: websocket.WebSocket, text: str) -> None:
        connection.send(text)
        echo = connection.recv()
        if echo != text:
            raise WrongEchoError(f"sent {text!r}, got {echo!r}")
