"""Only the first connection to a server waits for its name to be looked up."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kombu.transport.redis import Channel

from helpers.engines import until
from osbench.common.errors import StoreUnreachable
from osbench.common.protocol import broker, kept_addresses
from osbench.common.protocol.kept_addresses import KeptAddresses, KeptConnection, KeptSSLConnection
from osbench.common.protocol.redis_client import connect, translating_errors
from servers import RedisServer, redis_server

NAME = "redis.made-up"


class Names:
    """A name server that knows one name, and answers when it may."""

    def __init__(self, real: Callable) -> None:
        self._real = real
        self.addresses = ["127.0.0.1"]
        #: Threads that have asked.
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def __call__(self, host, port, *more, **named):
        if host != NAME:
            return self._real(host, port, *more, **named)
        self.asked.append(threading.current_thread().name)
        assert self.may_answer.wait(60)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in self.addresses]


@pytest.fixture
def names(monkeypatch) -> Names:
    found = Names(socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(kept_addresses, "_KEPT", KeptAddresses())
    return found


@pytest.fixture(scope="module")
def server():
    with redis_server(password="kept") as found:
        yield found


def ping(server: RedisServer, port: int | None = None) -> bool:
    """Make a connection of its own by name and use it."""
    url = f"redis://:{server.password}@{NAME}:{port or server.port}/0"
    with connect(url, 10.0) as client, translating_errors(client):
        return bool(client.ping())


def test_later_connections_do_not_ask_again(names, server):
    answers = [ping(server) for _ in range(5)]

    assert answers == [True] * 5
    assert names.asked == ["MainThread"]


def test_a_name_is_asked_again_in_the_background_once_its_addresses_are_old(
    names, server, monkeypatch
):
    ping(server)
    monkeypatch.setattr(kept_addresses, "AGAIN_S", 0.0)
    names.may_answer.clear()
    answers = [ping(server) for _ in range(3)]
    asked = list(names.asked)
    names.may_answer.set()

    assert answers == [True] * 3
    assert asked == ["MainThread", "lookup"]


def test_a_server_that_has_moved_is_found_after_a_connection_failed(names, server, monkeypatch):
    monkeypatch.setattr(kept_addresses, "AGAIN_AFTER_FAILURE_S", 0.0)
    names.addresses = ["127.0.0.9"]
    with pytest.raises(StoreUnreachable):
        ping(server)
    names.addresses = ["127.0.0.1"]

    def is_found() -> bool:
        try:
            return ping(server)
        except StoreUnreachable:
            return False

    until(is_found)


def test_addresses_are_tried_one_after_the_other_and_the_one_that_works_first_next_time(
    names, server
):
    names.addresses = ["127.0.0.9", "127.0.0.1"]
    ping(server)

    assert kept_addresses._KEPT.of(NAME, server.port).addresses == ["127.0.0.1", "127.0.0.9"]


def test_a_name_that_cannot_be_looked_up_again_keeps_its_addresses(names, server, monkeypatch):
    ping(server)
    monkeypatch.setattr(kept_addresses, "AGAIN_S", 0.0)
    names.addresses = []
    ping(server)
    until(lambda: len(names.asked) == 2)

    assert ping(server)


def test_a_first_lookup_that_fails_is_told_and_tried_again(names, server):
    names.addresses = []
    with pytest.raises(StoreUnreachable, match="name resolution"):
        ping(server)
    names.addresses = ["127.0.0.1"]

    assert ping(server)


def test_threads_that_connect_at_once_ask_once(names, server):
    names.may_answer.clear()
    done: list[bool] = []
    threads = [threading.Thread(target=lambda: done.append(ping(server))) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: names.asked)
    names.may_answer.set()
    for thread in threads:
        thread.join(30)

    assert done == [True] * 4
    assert len(names.asked) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_addresses_in_numbers_are_not_kept(names, host):
    client = connect(f"redis://{_bracketed(host)}:1/0", 1.0)
    with pytest.raises(StoreUnreachable), translating_errors(client):
        client.ping()

    assert kept_addresses._KEPT._places == {}


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def test_a_server_with_tls_has_to_prove_the_name(names, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path / "cert.pem"))
    asked_for: list[str | None] = []
    context.sni_callback = lambda _, name, __: asked_for.append(name)
    verified = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as raw:
                raw.settimeout(30)
                with context.wrap_socket(raw, server_side=True):
                    verified.set()

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        url = f"rediss://{NAME}:{port}/0?ssl_ca_certs={tmp_path / 'cert.pem'}"
        with (
            connect(url, 10.0) as client,
            pytest.raises(StoreUnreachable),
            translating_errors(client),
        ):
            client.ping()
        thread.join(30)

    assert asked_for == [NAME]
    assert verified.is_set()


def _certificate(path) -> str:
    """A certificate for the name that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return str(path)


def test_the_broker_uses_kept_addresses_too(names, server):
    with broker.application(
        f"redis://:{server.password}@{NAME}:{server.port}/0"
    ).connection_for_write() as connection:
        connection.ensure_connection(max_retries=1)
        connection.default_channel.client.ping()

    assert Channel.connection_class is KeptConnection
    assert Channel.connection_class_ssl is KeptSSLConnection
    assert len(names.asked) == 1
    assert kept_addresses._KEPT._places.keys() == {(NAME, server.port)}
