"""A web server that answers with given bytes, as often as it is asked."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

#: The head of a response that announces 10 GB.
HUGE = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"


@contextlib.contextmanager
def answering(head: bytes, piece: bytes, *, for_ever: bool) -> Iterator[str]:
    """A server that answers each connection so."""
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(65536)
            connection.sendall(head + piece)
            while for_ever:
                connection.sendall(piece)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    # wakes the thread that accepts
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
