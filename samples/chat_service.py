"""A chat service that streams its replies, to put load on; see docs/streams.md.

POST /chat with {"prompt": TEXT, "tokens": N} streams N tokens as server-sent events, and [DONE].
GET /rows?number=N streams N lines of JSON. GET /notices streams notices without an end, with a
comment between them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

WORDS = [
    "the",
    "load",
    "is",
    "what",
    "it",
    "was",
    "and",
    "a",
    "quiet",
    "service",
    "answers",
    "while",
    "others",
    "wait",
]
#: Most tokens of a reply, and lines of /rows.
MOST = 100_000


class Chat(BaseHTTPRequestHandler):
    """Serves one connection, with a separate thread."""

    protocol_version = "HTTP/1.1"
    #: Seconds to the first token, and from each token to the next.
    first_s: ClassVar[float] = 0.08
    gap_s: ClassVar[float] = 0.02
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Stream a reply to a prompt."""
        try:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            number = min(int(asked.get("tokens", 30)), MOST)
        except (ValueError, AttributeError, TypeError):
            self.send_error(400, "not a JSON object with a prompt")
            return
        if self.path != "/chat":
            self.send_error(404)
            return
        self.stream("text/event-stream", self.tokens(number))

    def do_GET(self) -> None:
        """Stream lines of JSON, or notices."""
        parts = urlsplit(self.path)
        if parts.path == "/rows":
            number = parse_qs(parts.query).get("number", ["100"])[0]
            lines = range(min(int(number), MOST) if number.isdigit() else 0)
            pieces = (json.dumps({"row": line}) + "\n" for line in lines)
            self.stream("application/x-ndjson", pieces)
        elif parts.path == "/notices":
            self.stream("text/event-stream", self.notices())
        else:
            self.send_error(404)

    def tokens(self, number: int) -> Iterator[str]:
        """Yield the events of a reply at their times."""
        time.sleep(self.first_s)
        for at in range(number):
            if at:
                # some tokens take longer, as in real services
                time.sleep(self.gap_s * random.choice((0.5, 1, 1, 1, 1.5)))
            yield f"id: {at}\ndata: {json.dumps({'text': random.choice(WORDS) + ' '})}\n\n"
        yield "data: [DONE]\n\n"

    def notices(self) -> Iterator[str]:
        """Yield notices until the client has gone."""
        number = 0
        while True:
            number += 1
            yield f"event: notice\ndata: notice {number}\n\n: still here\n\n"
            time.sleep(self.gap_s)

    def stream(self, content_type: str, pieces: Iterator[str]) -> None:
        """Send pieces as chunks, each as soon as it is there."""
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                data = piece.encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """A server whose threads end with it."""

    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--first", type=float, default=0.08, help="seconds to the first token")
    parser.add_argument("--gap", type=float, default=0.02, help="seconds between tokens")
    options = parser.parse_args()
    Chat.first_s, Chat.gap_s = options.first, options.gap
    with contextlib.suppress(KeyboardInterrupt):
        Server(("127.0.0.1", options.port), Chat).serve_forever()


if __name__ == "__main__":
    main()
