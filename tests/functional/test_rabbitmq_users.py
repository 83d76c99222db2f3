"""RabbitMQ with TLS, client certificates, and users that may do what they have to."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.readme import blocks
from helpers.runs import Site, site
from servers import RabbitmqServer, folder, rabbitmq_server, redis_server
from servers.secured_redis import new_secrets

pytestmark = pytest.mark.functional

LOAD = {
    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
    "runner": {"constant": {"times": 200, "concurrency": 4}},
}


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    with folder() as home:
        new_secrets(home / "secrets", "rabbit.example")
        yield home / "secrets"


@pytest.fixture(scope="module")
def broker(certificates: Path) -> Iterator[RabbitmqServer]:
    with rabbitmq_server(certificates) as found:
        (block,) = blocks("rabbitmq-users", "docs/operations.md")
        for line in block.text.strip().splitlines():
            _, *words = [word.strip("'") for word in line.split()]
            found.control(*words, typed="change-me-too\n")
        yield found


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found, redis_server(password="of-redis") as redis:
        found.configure({"messaging": {"redis_url": redis.url}})
        assert found.coord("keys", "new").code == 0
        found.redis_url = redis.url  # type: ignore[attr-defined]
        yield found


def messaging(
    here: Site, broker: RabbitmqServer, certificates: Path, role: str, **other: Any
) -> dict[str, Any]:
    return {
        "messaging": {
            "redis_url": here.redis_url,  # type: ignore[attr-defined]
            "broker_url": f"amqps://osbench-{role}:change-me-too@127.0.0.1:{broker.tls_port}/osbench",
            "tls_ca_file": str(certificates / "ca.pem"),
            "tls_certificate_file": str(certificates / f"{role}.pem"),
            "tls_key_file": str(certificates / f"{role}-key.pem"),
            **other,
        }
    }


def test_a_run_with_the_users_of_the_page(
    here: Site, broker: RabbitmqServer, certificates: Path
) -> None:
    here.configure(messaging(here, broker, certificates, "coordinator"))
    file = here.configure(messaging(here, broker, certificates, "worker"), name="w.conf")
    worker = here.start("osbench-worker", "--processes", "2", "--config-file", str(file))

    done = here.coord("run", "--json", "--wait-for-workers", "120", here.task(LOAD))
    exchanges = broker.control("list_exchanges", "-p", "osbench", "name")
    looked = here.coord("doctor")
    worker.interrupt()

    assert done.code == 0, done.err
    assert done.sums["ok"] == 200
    assert worker.finish().code == 0
    assert looked.code == 0, looked.out
    log = "".join(path.read_text() for path in (broker.folder / "log").glob("*.log"))
    assert "access_refused" not in log
    # those that a virtual host has: another one would stay for ever
    assert "osbench" not in exchanges


@pytest.mark.parametrize(("role", "rights"), [("worker", "^$"), ("coordinator", "^$")])
def test_a_right_that_is_missing_is_told_before_there_is_load(
    here: Site, broker: RabbitmqServer, certificates: Path, role: str, rights: str
) -> None:
    here.configure(messaging(here, broker, certificates, role))
    look = {
        "worker": lambda: here.start("osbench-worker").finish(),
        "coordinator": lambda: here.coord("doctor"),
    }
    listed = broker.control("list_user_permissions", f"osbench-{role}").splitlines()[-1].split("\t")
    broker.control("set_permissions", "-p", "osbench", f"osbench-{role}", *[rights] * 3)
    try:
        done = look[role]()
    finally:
        broker.control("set_permissions", "-p", "osbench", f"osbench-{role}", *listed[1:])

    assert done.code == {"worker": 2, "coordinator": 1}[role]
    assert f"for user 'osbench-{role}'" in " ".join((done.err + done.out).split())
    assert "docs/operations.md#rabbitmq" in done.err + done.out
    assert "Traceback" not in done.err
    assert "change-me-too" not in done.err + done.out


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"tls_ca_file": ""}, "name the file of its authority: [messaging] tls_ca_file"),
        (
            {"tls_certificate_file": "", "tls_key_file": ""},
            "it asks for a certificate of this client",
        ),
    ],
)
def test_certificates_that_do_not_fit_are_told(
    here: Site, broker: RabbitmqServer, certificates: Path, changed: dict[str, str], told: str
) -> None:
    here.configure(messaging(here, broker, certificates, "worker", **changed))

    done = here.start("osbench-worker").finish()

    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_broker_of_another_name(here: Site, broker: RabbitmqServer, certificates: Path) -> None:
    found = messaging(here, broker, certificates, "worker")
    url = found["messaging"]["broker_url"].replace("@127.0.0.1:", "@127.0.0.2:")
    found["messaging"]["broker_url"] = url

    with socket.socket() as listener:
        # passes on what it hears to the broker
        listener.bind(("127.0.0.2", broker.tls_port))
        listener.listen()
        threading.Thread(target=pass_on, args=(listener, broker.tls_port), daemon=True).start()
        here.configure(found)
        done = here.start("osbench-worker").finish()

    assert done.code == 2
    assert "use the name or address that its certificate has" in done.err


def pass_on(listener: socket.socket, port: int) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=pump, args=(one, other), daemon=True).start()


def pump(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
