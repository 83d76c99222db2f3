"""A private RabbitMQ, from Debian's package."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import amqp

from servers import child

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitmqServer:
    """A RabbitMQ node of its own name and folder, with its own port mapper."""

    def __init__(
        self,
        folder: Path,
        *,
        node: str | None = None,
        ports: tuple[int, int, int] | None = None,
        tls: Path | None = None,
        metrics: bool = False,
    ) -> None:
        """`ports` are those of the broker, of its node and of the port mapper.

        With `metrics`, the plug-in rabbitmq_prometheus answers at `metrics_port`.
        `tls` is a folder that new-secrets has made: clients with its certificates get in, at
        `tls_port`.
        """
        self.folder = folder
        self.node = node or f"osbench-{secrets.token_hex(4)}@localhost"
        taken = ports or (child.free_port(), child.free_port(), child.free_port())
        self.port, self._dist_port, self.epmd_port = taken
        self._tls = tls
        self.tls_port = child.free_port() if tls else 0
        self.metrics_port = child.free_port() if metrics else 0
        self._epmd: child.Child | None = None
        self._broker: child.Child | None = None

    @property
    def url(self) -> str:
        """Where the broker answers."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        """Start port mapper and broker; wait until the broker answers with its node's name."""
        self.write_config()
        self._epmd = child.Child(
            self.epmd_command(),
            folder=self.folder,
            log=self.folder / "epmd.log",
            env=self.environment(),
        )
        assert self._epmd.wait_until(self.epmd_answers), self._epmd.tail()
        self.start_broker()

    def start_broker(self) -> None:
        """Start the broker alone, at the address that it had."""
        log = self.folder / "rabbitmq.log"
        self._broker = child.Child(
            self.command(), folder=self.folder, log=log, env=self.environment()
        )
        assert self._broker.wait_until(self.is_ours), self._broker.tail()

    def kill(self) -> None:
        """Kill the broker: its queues, which do not outlive it, are gone."""
        if self._broker is not None:
            self._broker.end(signal.SIGKILL)
        self._broker = None

    def calm(self) -> None:
        """Have it run, without an alarm."""
        if self._broker is None:
            self.start_broker()
        os.killpg(self._broker.process.pid, signal.SIGCONT)
        for resource in ("memory", "disk"):
            self.end_alarm(resource)

    def stop(self) -> None:
        """End broker and port mapper."""
        for process in (self._broker, self._epmd):
            if process is not None:
                process.end(within_s=20.0)
        self._broker = self._epmd = None

    def write_config(self) -> None:
        """Write the broker's configuration."""
        (self.folder / "enabled_plugins").write_text(
            "[rabbitmq_prometheus].\n" if self.metrics_port else "[].\n"
        )
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            # The default adds the host's full name, which differs from machine to machine.
            f"cluster_name = {self.node}\n"
            "num_acceptors.tcp = 2\nlog.console = false\nlog.file.level = warning\n"
            "vm_memory_high_watermark.absolute = 512MiB\ndisk_free_limit.absolute = 1MB\n"
            + self._tls_lines()
            + self._metrics_lines()
        )

    def _tls_lines(self) -> str:
        if self._tls is None:
            return ""
        return (
            f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}\n"
            f"ssl_options.cacertfile = {self._tls}/ca.pem\n"
            f"ssl_options.certfile = {self._tls}/redis.pem\n"
            f"ssl_options.keyfile = {self._tls}/redis-key.pem\n"
            "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n"
        )

    def _metrics_lines(self) -> str:
        if not self.metrics_port:
            return ""
        return f"prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = {self.metrics_port}\n"

    def control(self, *arguments: str, typed: str = "") -> str:
        """What rabbitmqctl prints when it reads what is typed."""
        return subprocess.run(
            [RABBITMQ.with_name("rabbitmqctl"), "--quiet", *arguments],
            env=self.environment(),
            input=typed,
            capture_output=True,
            text=True,
            timeout=child.PATIENCE_S,
            check=True,
        ).stdout

    def begin_alarm(self, resource: str) -> None:
        """Have the broker act as if it were short of "memory" or "disk"."""
        self.control(
            "eval", f"rabbit_alarm:set_alarm({{{{resource_limit, {resource}, node()}}, []}})."
        )

    def end_alarm(self, resource: str) -> None:
        """End that alarm; without effect where there is none."""
        self.control("eval", f"rabbit_alarm:clear_alarm({{resource_limit, {resource}, node()}}).")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While this goes on, the broker stands still; connections stay."""
        assert self._broker is not None
        group = self._broker.process.pid
        os.killpg(group, signal.SIGSTOP)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGCONT)

    def epmd_command(self) -> list[str]:
        """What starts the port mapper."""
        epmd = shutil.which("epmd") or "epmd"
        return [epmd, "-address", "127.0.0.1", "-port", str(self.epmd_port)]

    def command(self) -> list[str]:
        """What starts the broker."""
        return [str(RABBITMQ)]

    def environment(self) -> dict[str, str]:
        """All variables that port mapper and broker see."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "rabbitmq.pid"),
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.epmd_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                # its schedulers do not spin while they wait for work
                "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1"
                " +sbwt none +sbwtdcpu none +sbwtdio none"
            ),
        }

    def epmd_answers(self) -> bool:
        """Whether somebody answers on the port mapper's port."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.epmd_port)) == 0

    def is_ours(self) -> bool:
        """Whether a broker answers that has the name of our node."""
        try:
            with amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=2.0) as connection:
                return connection.server_properties.get("cluster_name") == self.node
        except (OSError, amqp.AMQPError):
            return False


@contextlib.contextmanager
def rabbitmq_server(tls: Path | None = None, *, metrics: bool = False) -> Iterator[RabbitmqServer]:
    """A private RabbitMQ; skips the test where the Debian package rabbitmq-server is missing."""
    if not RABBITMQ.exists():
        child.missing("RabbitMQ is not installed (Debian package rabbitmq-server)")
    with child.folder() as folder:
        server = RabbitmqServer(folder, tls=tls, metrics=metrics)
        try:
            server.start()
            yield server
        finally:
            server.stop()
