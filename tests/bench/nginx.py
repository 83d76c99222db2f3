"""An nginx of our own: one worker, one short answer, connections kept."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.stage import BenchError, Stage
from helpers.certificates import self_signed
from servers import free_port

_CONFIG = """
daemon off;
master_process on;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  {temporary}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    listen 127.0.0.1:{tls_port} ssl backlog=1024;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    ssl_session_cache shared:bench:1m;
    default_type application/json;
    location / {{ return 200 '{body}'; }}
  }}
}}
"""
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
#: Length of the answer, bytes.
_BODY = 79


def find() -> str | None:
    """Where nginx is; Debian keeps it where a user's PATH does not look."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which("nginx", path=f"{path}:/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True, kw_only=True)
class Nginx:
    """One that runs."""

    url: str
    tls_url: str
    #: The file with its certificate, which is its own authority, too.
    certificate: Path


@contextlib.contextmanager
def nginx(stage: Stage) -> Iterator[Nginx]:
    """Start it and give its addresses. Raises BenchError where it is not ours that answers."""
    folder: Path = stage.subfolder("nginx")
    port, tls_port = free_port(), free_port()
    certificate = self_signed(folder)
    body = f'{{"token": "{secrets.token_hex(8)}"}}'.ljust(_BODY)
    config = folder / "nginx.conf"
    config.write_text(
        _CONFIG.format(
            folder=folder,
            port=port,
            tls_port=tls_port,
            certificate=certificate,
            body=body,
            temporary=" ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY),
        )
    )
    url = f"http://127.0.0.1:{port}/"

    def answers() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.read().decode() == body)
        return False

    with stage.child([find() or "nginx", "-e", folder / "error.log", "-c", config]) as child:
        if not child.wait_until(answers, within_s=10):
            raise BenchError(f"nginx did not start:\n{child.tail()}")
        yield Nginx(url=url, tls_url=f"https://127.0.0.1:{tls_port}/", certificate=certificate)
