"""TLS to Redis: what goes wrong is told in one message that says what to do."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.certificates import self_signed
from helpers.runs import Site, site
from osbench.common.config.config import load
from osbench.common.errors import StoreError, StoreMissing
from osbench.common.protocol.redis_client import check, connect
from servers import redis_server
from servers.child import PATIENCE_S
from servers.secured_redis import SecuredRedis, new_secrets, secured_redis

pytestmark = pytest.mark.functional

CHECKS = ("tls-cert-file", "tls-key-file")


@pytest.fixture(scope="module")
def server() -> Iterator[SecuredRedis]:
    with secured_redis() as found:
        yield found


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Secrets of another deployment."""
    made = tmp_path_factory.mktemp("others") / "secrets"
    new_secrets(made)
    return made


def refusal(here: Site, messaging: dict[str, str], kind: type[Exception] = StoreError) -> str:
    url = load([str(here.configure({"messaging": messaging}))]).messaging.redis_url
    with pytest.raises(kind) as caught:
        check(connect(url, 5.0), url)
    text = str(caught.value)
    # neither password nor places of files
    assert "pem" not in text.partition("[messaging]")[0]
    assert url.partition("@")[0].rpartition(":")[2] not in text
    return text


def test_what_new_secrets_makes_is_taken(here: Site, server: SecuredRedis) -> None:
    for role in ("coordinator", "worker"):
        file = here.configure({"messaging": server.messaging(role)})
        url = load([str(file)]).messaging.redis_url

        check(connect(url, 5.0), url)


def test_a_server_with_a_certificate_of_another_authority(
    here: Site, server: SecuredRedis, others: Path
) -> None:
    messaging = server.messaging("coordinator")

    assert "authority: [messaging] tls_ca_file" in refusal(
        here, {**messaging, "tls_ca_file": str(others / "ca.pem")}
    )
    del messaging["tls_ca_file"]
    assert "authority: [messaging] tls_ca_file" in refusal(here, messaging)


def test_a_client_without_a_certificate(here: Site, server: SecuredRedis) -> None:
    messaging = server.messaging("worker")
    del messaging["tls_certificate_file"], messaging["tls_key_file"]

    assert "it asks for a certificate of this client" in refusal(here, messaging)


def test_a_client_with_a_certificate_of_another_authority(
    here: Site, server: SecuredRedis, others: Path
) -> None:
    files = {
        "tls_certificate_file": str(others / "worker.pem"),
        "tls_key_file": str(others / "worker-key.pem"),
    }

    text = refusal(here, {**server.messaging("worker"), **files})

    assert "tls_certificate_file has to be from the authority that it knows" in text


def test_a_key_that_does_not_belong_to_the_certificate(here: Site, server: SecuredRedis) -> None:
    messaging = server.messaging("worker")
    messaging["tls_key_file"] = messaging["tls_key_file"].replace("worker", "coordinator")

    text = refusal(here, messaging)

    assert "tls_key_file is not the key of tls_certificate_file" in text


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("tls_ca_file", "tls_ca_file has no certificate"),
        ("tls_certificate_file", "have to be PEM"),
    ],
)
def test_a_file_that_is_none(here: Site, server: SecuredRedis, option: str, told: str) -> None:
    file = here.write("no.pem", "not a certificate\n")

    assert told in refusal(here, {**server.messaging("worker"), option: str(file)})


def test_a_server_of_another_name(here: Site, server: SecuredRedis) -> None:
    messaging = server.messaging("worker")
    messaging["redis_url"] = messaging["redis_url"].replace("127.0.0.1", "127.0.0.2")
    admin = server.client()
    admin.config_set("bind", "127.0.0.1 127.0.0.2")
    try:
        assert "use the name or address that its certificate has" in refusal(here, messaging)
    finally:
        admin.config_set("bind", "127.0.0.1")


def test_a_certificate_that_has_ended(here: Site, server: SecuredRedis) -> None:
    expired = self_signed(here.home, expired=True)
    messaging = {**server.messaging("worker"), "tls_ca_file": str(expired)}
    with serving(server, expired, expired):
        assert "renew its certificate" in refusal(here, messaging)


@contextlib.contextmanager
def serving(server: SecuredRedis, certificate: Path, key: Path) -> Iterator[None]:
    """The server with another certificate for a while."""
    admin = server.client()
    before = {name: admin.config_get(name)[name] for name in CHECKS}
    pairs = [*zip(CHECKS, (str(certificate), str(key)), strict=True)]
    admin.execute_command("CONFIG", "SET", *(word for pair in pairs for word in pair))
    try:
        yield
    finally:
        pairs = [*before.items()]
        admin.execute_command("CONFIG", "SET", *(word for pair in pairs for word in pair))


def test_renewed_certificates_are_taken_without_a_restart(here: Site, server: SecuredRedis) -> None:
    old = (server.secrets / "redis.pem").read_bytes()
    new_secrets("--renew", server.secrets, "osbench-redis")
    with serving(server, server.secrets / "redis.pem", server.secrets / "redis-key.pem"):
        url = load([str(here.configure({"messaging": server.messaging("worker")}))])
        check(connect(url.messaging.redis_url, 5.0), url.messaging.redis_url)

    assert (server.secrets / "redis.pem").read_bytes() != old


def test_a_client_without_tls_at_a_port_with_it(here: Site, server: SecuredRedis) -> None:
    url = server.messaging("worker")["redis_url"].replace("rediss://", "redis://")

    assert "begins with rediss://" in refusal(here, {"redis_url": url})


def test_a_client_with_tls_at_a_port_without_it(here: Site, server: SecuredRedis) -> None:
    with redis_server() as plain:
        messaging = server.messaging("worker")
        messaging["redis_url"] = f"rediss://127.0.0.1:{plain.port}/0"
        url = load([str(here.configure({"messaging": messaging}))]).messaging.redis_url
        with pytest.raises((StoreError, StoreMissing), match="begins with redis://"):
            check(connect(url, 5.0), url)


def test_doctor_tells_how_long_certificates_are_valid(here: Site, server: SecuredRedis) -> None:
    soon = signed(server, here.home / "soon.pem", days=5)
    messaging = server.messaging("coordinator")
    here.configure({"messaging": messaging})
    well = here.coord("doctor", "--json").out
    here.configure({"messaging": {**messaging, "tls_certificate_file": str(soon)}})
    late = here.coord("doctor", "--json").out

    own = [one for one in json.loads(well) if one["about"] == "TLS"]
    assert [one["state"] for one in own] == ["ok", "ok"]
    found, _ = [one for one in json.loads(late) if one["about"] == "TLS"]
    assert found["state"] == "warning"
    assert "of this host (tls_certificate_file) is valid for 5 days" in found["detail"]
    assert "renew it" in found["remedy"]


def signed(server: SecuredRedis, path: Path, days: int) -> Path:
    """A certificate for the coordinator's key that ends sooner."""
    key, ca = server.secrets / "coordinator-key.pem", server.secrets / "ca"
    request = path.with_suffix(".csr")
    subprocess.run(
        ["openssl", "req", "-new", "-key", key, "-subj", "/CN=soon", "-out", request], check=True
    )
    subprocess.run(
        ["openssl", "x509", "-req", "-in", request, "-CA", f"{ca}.pem", "-CAkey", f"{ca}-key.pem",
         "-set_serial", "7", "-days", str(days), "-out", path],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("command", ["osbench-worker", "osbench-coord"])
def test_users_see_one_message(here: Site, server: SecuredRedis, command: str) -> None:
    messaging = server.messaging("worker")
    del messaging["tls_certificate_file"], messaging["tls_key_file"]
    here.configure({"messaging": messaging})
    here.coord("keys", "new")
    task = here.task({"scenario": {"Dummy.dummy": {}}})

    done = here.start(command, *(["run", task] if command == "osbench-coord" else [])).finish()

    assert done.code == 2
    assert "it asks for a certificate of this client" in done.err
    assert "Traceback" not in done.err
    assert messaging["redis_url"].partition("@")[0].rpartition(":")[2] not in done.err


def test_openssl_agrees_that_old_protocols_are_refused(server: SecuredRedis) -> None:
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_1"],
        input="",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode != 0
