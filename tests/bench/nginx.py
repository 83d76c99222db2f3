"""An nginx of our own: one worker, one short answer, connections kept."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.stage import BenchError, Stage
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


@contextlib.contextmanager
def nginx(stage: Stage) -> Iterator[str]:
    """Start it and give its address. Raises BenchError where it is not ours that answers."""
    folder: Path = stage.subfolder("nginx")
    port = free_port()
    body = f'{{"token": "{secrets.token_hex(8)}"}}'.ljust(_BODY)
    config = folder / "nginx.conf"
    config.write_text(
        _CONFIG.format(
            folder=folder,
            port=port,
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
        yield url
