"""A private nginx, with the locations and the logs that a test asks for."""

from __future__ import annotations

import contextlib
import os
import shutil
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

from servers.child import Child, free_port, missing

_CONFIG = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 128; }}
http {{
  {temporary}
  {http}
  server {{
    listen 127.0.0.1:{port};
    location = /-/ours {{ access_log off; return 200 '{token}'; }}
    {locations}
  }}
}}
"""
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextlib.contextmanager
def nginx_server(folder: Path, http: str, locations: str) -> Iterator[str]:
    """The URL of an nginx that writes to `folder` only; skips the test if nginx is missing.

    `http`: directives such as logs and upstreams; `locations`: those of its server.
    """
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if found is None:
        missing("nginx is not installed (Debian package nginx)")
    port, token = free_port(), uuid.uuid4().hex
    config = folder / "nginx.conf"
    text = _CONFIG.format(
        folder=folder,
        temporary=" ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY),
        http=http,
        port=port,
        token=token,
        locations=locations,
    )
    config.write_text(text, "utf-8")
    url = f"http://127.0.0.1:{port}"
    command = [found, "-e", str(folder / "error.log"), "-c", str(config)]
    child = Child(command, folder=folder, log=folder / "nginx.out")
    try:
        assert child.wait_until(lambda: _is_ours(url, token)), child.tail()
        yield url
    finally:
        child.end()


def _is_ours(url: str, token: str) -> bool:
    with (
        contextlib.suppress(OSError),
        urllib.request.urlopen(f"{url}/-/ours", timeout=2) as answer,
    ):
        return bool(answer.read().decode() == token)
    return False
