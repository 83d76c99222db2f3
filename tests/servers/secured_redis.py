"""A Redis as deploy/new-secrets sets it up: TLS, client certificates, users with few rights."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from servers import child
from servers.redis_server import RedisServer, redis_executable

NEW_SECRETS = Path(__file__).parents[2] / "deploy" / "new-secrets"


class SecuredRedis(RedisServer):
    """Also has a user that may do all, for tests, with the certificate of the coordinator."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, password=secrets.token_hex(8))
        self.secrets = folder / "secrets"
        new_secrets(self.secrets)

    @property
    def url(self) -> str:
        files = {"ca_certs": "ca", "certfile": "coordinator", "keyfile": "coordinator-key"}
        query = "&".join(
            f"ssl_{name}={quote(str(self.secrets / file))}.pem" for name, file in files.items()
        )
        return f"rediss://tests:{self.password}@127.0.0.1:{self.port}/0?{query}"

    def messaging(self, role: str) -> dict[str, str]:
        """[messaging] of the coordinator or of workers, as new-secrets has written it."""
        text = (self.secrets / f"{role}.conf").read_text()
        text = text.replace("osbench-redis:6379", f"127.0.0.1:{self.port}")
        text = text.replace("/etc/osbench/", f"{self.secrets}/")
        lines = text.partition("[messaging]\n")[2].partition("\n[")[0].split("\n")
        pairs = [line.partition(" = ") for line in lines if line]
        return {name: value for name, _, value in pairs}

    def refusals(self) -> list[str]:
        """What users have tried that they may not."""
        return [str(one) for one in self.client().execute_command("ACL", "LOG")]

    def _write_config(self) -> Path:
        text = (self.secrets / "redis.conf").read_text()
        text = text.replace("/etc/osbench-redis/", f"{self.secrets}/")
        text = text.replace("tls-port 6379", f"tls-port {self.port}")
        text = text.replace("bind * -::*", f"bind 127.0.0.1\ndir {self.folder}")
        text += f"user tests on >{self.password} ~* &* +@all\n"
        path = self.folder / "redis.conf"
        path.touch(mode=0o600)
        path.write_text(text)
        return path


def new_secrets(*arguments: str | Path) -> None:
    """Run deploy/new-secrets; skips the test where there is no openssl."""
    if shutil.which("openssl") is None:
        child.missing("openssl is not installed")
    subprocess.run([NEW_SECRETS, *arguments], check=True)


def need_tls_and_permissions() -> None:
    """Skip the test where the server has no TLS, or no permissions to only read or write keys."""
    tried = subprocess.run(
        [redis_executable(), "--port", "0", "--tls-port", str(child.free_port()),
         "--user", "tried", "on", "%R~a"],
        capture_output=True,
        text=True,
        timeout=child.PATIENCE_S,
        check=False,
    )  # fmt: skip
    said = tried.stdout + tried.stderr
    if "Bad directive" in said or "Failed finding TLS support" in said:
        child.missing("a redis-server with TLS")
    if "Error in user declaration" in said:
        child.missing("Redis 7 or newer, or Valkey: permissions to read or to write keys")


@contextlib.contextmanager
def secured_redis() -> Iterator[SecuredRedis]:
    """A private Redis with what new-secrets makes; skips the test where it cannot be."""
    need_tls_and_permissions()
    with child.folder() as folder:
        server = SecuredRedis(folder)
        try:
            server.start()
            yield server
        finally:
            server.kill()
