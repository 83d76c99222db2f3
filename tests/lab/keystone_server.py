"""A real Keystone on loopback: SQLite, Fernet tokens, OSProfiler on."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import requests
from environment import environment

from servers import Child, RedisServer, folder, free_port, redis_server

REQUIREMENTS = Path(__file__).with_name("requirements-keystone.txt")
LAUNCHER = Path(__file__).with_name("serve_keystone.py")

CONFIG = """\
[DEFAULT]
log_file = {folder}/keystone.log
use_stderr = false
[database]
connection = sqlite:///{folder}/keystone.db
[fernet_tokens]
key_repository = {folder}/fernet-keys
[fernet_receipts]
key_repository = {folder}/fernet-keys
[credential]
key_repository = {folder}/credential-keys
[identity]
# Keystone's default of 12 rounds costs 0.2 s of CPU a token; above 72 bytes bcrypt warns.
password_hash_algorithm = bcrypt
password_hash_rounds = 4
max_password_length = 72
[cache]
# Keystone's own default: rows are cached within one request only.
enabled = true
backend = dogpile.cache.null
[profiler]
enabled = true
hmac_keys = {hmac_key}
trace_sqlalchemy = true
connection_string = {trace_store}
"""


@dataclass(frozen=True, kw_only=True)
class Keystone:
    """How to reach a Keystone, and where its traces go."""

    #: Identity endpoint, with /v3.
    auth_url: str
    username: str
    password: str
    project_name: str
    #: Name of both domains, the user's and the project's.
    domain_name: str
    region_name: str
    #: Key that signs trace headers.
    hmac_key: str
    #: The Redis that holds the traces.
    traces: RedisServer

    @property
    def trace_store(self) -> str:
        """OSProfiler's connection string."""
        return self.traces.url

    def deployment(self) -> dict[str, object]:
        """The record of this cloud, in the form that Rally takes, too."""
        return {
            "openstack": {
                "auth_url": self.auth_url,
                "region_name": self.region_name,
                "endpoint_type": "public",
                "admin": {
                    "username": self.username,
                    "password": self.password,
                    "project_name": self.project_name,
                    "user_domain_name": self.domain_name,
                    "project_domain_name": self.domain_name,
                },
                "https_insecure": False,
                "profiler_hmac_key": self.hmac_key,
                "profiler_conn_str": self.trace_store,
            }
        }


def _initialise(venv: Path, home: Path, base_url: str, password: str) -> None:
    for keys in ("fernet-keys", "credential-keys"):
        (home / keys).mkdir(mode=0o700)
    manage = [str(venv / "bin/keystone-manage"), "--config-file", str(home / "keystone.conf")]
    urls = [
        part
        for kind in ("admin", "internal", "public")
        for part in (f"--bootstrap-{kind}-url", f"{base_url}/v3/")
    ]
    owner = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
    for arguments in (
        ["db_sync"],
        ["fernet_setup", *owner],
        ["credential_setup", *owner],
        ["bootstrap", "--bootstrap-region-id", "RegionOne", *urls],
    ):
        done = subprocess.run(
            [*manage, *arguments],
            cwd=home,
            env={**os.environ, "OS_BOOTSTRAP_PASSWORD": password},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"keystone-manage {arguments[0]}:\n{done.stderr[-2000:]}"


def _answers(base_url: str) -> bool:
    try:
        return requests.get(f"{base_url}/v3", timeout=5).ok
    except requests.ConnectionError:
        return False


def _token(base_url: str, password: str) -> bool:
    user = {"name": "admin", "domain": {"name": "Default"}, "password": password}
    scope = {"project": {"name": "admin", "domain": {"name": "Default"}}}
    identity = {"methods": ["password"], "password": {"user": user}}
    body = {"auth": {"identity": identity, "scope": scope}}
    return requests.post(f"{base_url}/v3/auth/tokens", json=body, timeout=30).ok


@contextlib.contextmanager
def keystone_server() -> Iterator[Keystone]:
    """A Keystone of our own with an admin whose password nobody else knows, and its Redis."""
    venv = environment("keystone", REQUIREMENTS)
    password, hmac_key = secrets.token_urlsafe(16), secrets.token_hex(16)
    with folder() as home, redis_server(password=secrets.token_hex(8)) as traces:
        base_url = f"http://127.0.0.1:{(port := free_port())}"
        config = home / "keystone.conf"
        config.touch(mode=0o600)
        config.write_text(CONFIG.format(folder=home, hmac_key=hmac_key, trace_store=traces.url))
        _initialise(venv, home, base_url, password)
        server = Child(
            [str(venv / "bin/python"), str(LAUNCHER), str(port)],
            folder=home,
            log=home / "waitress.log",
            env={**os.environ, "OS_KEYSTONE_CONFIG_DIR": str(home)},
        )
        try:
            assert server.wait_until(lambda: _answers(base_url), within_s=60.0), server.tail()
            # a fresh Keystone sets its drivers and mappers up with the first requests; several
            # of them at once may get an HTTP 500
            warm = [_token(base_url, password) for _ in range(3)]
            assert all(warm[1:]), server.tail()
            yield Keystone(
                auth_url=f"{base_url}/v3",
                username="admin",
                password=password,
                project_name="admin",
                domain_name="Default",
                region_name="RegionOne",
                hmac_key=hmac_key,
                traces=traces,
            )
        finally:
            server.end()
