import contextlib
import logging
import socket
import threading

import pytest

from osbench.worker.tracing.profiling import Tracer
from osbench.worker.tracing.span_writer import SpanWriter


@pytest.fixture
def nobody():
    """The port of a server that refuses all connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def trace(writer, iterations):
    tracer = Tracer("key", "r1", 1.0, writer, 1)
    return [tracer.end(tracer.begin(number), None) for number in range(iterations)]


@pytest.mark.parametrize(
    ("conn_str", "supported"),
    [
        ("redis://:pw@host:6379/0", True),
        ("rediss://host", True),
        ("unix:///run/redis.sock?db=1", True),
        ("messaging://", False),
        ("mongodb://host", False),
        ("redissentinel://host:26379", False),
        ("redis", False),
        ("", False),
        ("redis://[::1", False),
        ("redis://:hun/ter2@host", False),
    ],
)
def test_which_stores_can_be_written_to(conn_str, supported):
    assert SpanWriter.supports(conn_str) is supported


@pytest.mark.parametrize("conn_str", ["redis://:hun/ter2@host:6379", "mongodb://u:hunter2@host"])
def test_a_malformed_connection_string_is_refused_without_its_password(conn_str):
    with pytest.raises(ValueError, match="connection string") as refused:
        SpanWriter(conn_str, 60, 100)

    assert "hun" not in str(refused.value)


def test_a_store_that_is_not_there_drops_and_counts(nobody, caplog):
    writer = SpanWriter(f"redis://:hunter2@127.0.0.1:{nobody}", 60, 1000)

    with caplog.at_level(logging.DEBUG):
        ids = trace(writer, 100)
        before = writer.stats()
        writer.close(5.0)

    assert len(set(ids)) == 100
    assert before["waiting"] == 100
    assert writer.stats()["written"] == writer.stats()["waiting"] == 0
    assert writer.stats()["dropped"] == 100
    assert "refused" in writer.stats()["error"]
    assert f"127.0.0.1:{nobody}" in caplog.text
    assert "hunter2" not in caplog.text + str(writer.stats())


def test_the_queue_never_grows_beyond_its_limit(nobody):
    writer = SpanWriter(f"redis://127.0.0.1:{nobody}", 60, 50)

    trace(writer, 300)
    stats = writer.stats()
    writer.close(5.0)

    assert stats["waiting"] == 50
    assert stats["dropped"] == 250
    assert writer.stats()["dropped"] == 300


def test_no_span_is_miscounted_when_many_threads_write(nobody):
    writer = SpanWriter(f"redis://127.0.0.1:{nobody}", 60, 1000)
    threads = [threading.Thread(target=trace, args=(writer, 5000)) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = writer.stats()
    writer.close(5.0)

    assert stats["waiting"] + stats["dropped"] == 40_000
    assert stats["waiting"] <= 1000
    assert writer.stats()["dropped"] == 40_000


def test_spans_that_come_after_the_end_are_dropped(nobody):
    writer = SpanWriter(f"redis://127.0.0.1:{nobody}", 60, 1000)

    writer.close(5.0)
    trace(writer, 3)

    assert writer.stats()["dropped"] == 3


def test_a_clock_that_fails_loses_spans_and_nothing_else():
    def broken(monotonic_ns):
        raise LookupError("no offset yet")

    writer = SpanWriter("redis://127.0.0.1:1", 60, 1000, broken)

    trace(writer, 3)
    writer.close(5.0)

    assert writer.stats()["dropped"] == 3
    assert "LookupError" in writer.stats()["error"]


class Server:
    """A server that takes connections and sends each the same bytes, or none, for ever."""

    def __init__(self, says):
        self._says = says
        self._kept = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._kept.append(connection)
                with contextlib.suppress(ConnectionError):
                    connection.sendall(self._says)

    def close(self):
        # wakes the thread that accepts, which closing alone does not
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for connection in (self._listening, *self._kept):
            connection.close()


@pytest.fixture(params=[b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1\r\n", b"\r\n\r\n", b"-\r\n"])
def strange(request):
    server = Server(request.param)
    yield server
    server.close()


def test_a_server_that_is_not_redis_or_hangs_does_not_hold_anybody_up(strange):
    writer = SpanWriter(f"redis://127.0.0.1:{strange.port}", 60, 1000)

    ids = trace(writer, 50)
    writer.close(0.3)

    assert len(ids) == 50
    assert writer.stats()["written"] == 0
    assert writer.stats()["dropped"] == 50
