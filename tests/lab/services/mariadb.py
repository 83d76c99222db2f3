"""MariaDB, for services that fail with "database is locked" on SQLite under many clients."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from services.faults import NotStarted, Unavailable
from services.lab import Lab
from services.process import Process
from services.service import Service

DATABASES = (
    "cinder",
    "designate",
    "manila",
    "mistral",
    "neutron",
    "nova_api",
    "nova_cell0",
    "nova",
)
#: Statements that make its own tables, in this order.
SYSTEM = ("mysql_system_tables.sql", "mysql_performance_tables.sql")


def database_url(lab: Lab, name: str) -> str:
    """Where SQLAlchemy finds a database."""
    address = f"127.0.0.1:{lab.port('mariadb')}"
    return f"mysql+pymysql://lab:{lab.service_password}@{address}/{name}?charset=utf8mb4"


class Mariadb(Service):
    """One small server, from Debian's package mariadb-server-core."""

    name = "mariadb"
    ports = ("mariadb",)

    def check(self) -> None:
        if _executable() is None:
            raise Unavailable("MariaDB is not installed (Debian package mariadb-server-core)")

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("mariadb")
        data = _data(lab)
        data.mkdir(mode=0o700, exist_ok=True)
        options = [
            "[mariadbd]",
            "user = root",
            f"datadir = {data}",
            f"tmpdir = {home}",
            f"socket = {home}/mariadb.sock",
            f"pid-file = {home}/mariadb.pid",
            f"port = {lab.port('mariadb')}",
            "bind-address = 127.0.0.1",
            "skip-name-resolve",
            f"init-file = {home}/accounts.sql",
            "character-set-server = utf8mb4",
            "innodb-buffer-pool-size = 128M",
            # What a crash of the machine loses is of no use to anybody.
            "innodb-flush-log-at-trx-commit = 0",
            "max-connections = 400",
        ]
        statements = [
            f"CREATE USER IF NOT EXISTS lab@127.0.0.1 IDENTIFIED BY '{lab.service_password}';",
            "GRANT ALL ON *.* TO lab@127.0.0.1;",
            *(f"CREATE DATABASE IF NOT EXISTS {name};" for name in DATABASES),
        ]
        return {
            home / "mariadb.cnf": "\n".join(options) + "\n",
            home / "accounts.sql": "\n".join(statements) + "\n",
        }

    def initialise(self, lab: Lab) -> None:
        statements = ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket = NULL;"]
        executable = _executable()
        assert executable is not None, "check() comes first"
        # also if the package was unpacked elsewhere than in /usr
        folder = Path(executable).resolve().parents[1] / "share" / "mysql"
        statements += [(folder / name).read_text() for name in SYSTEM]
        done = subprocess.run(
            [*_command(lab), "--bootstrap", "--skip-networking", "--init-file="],
            input="\n".join(statements),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotStarted(f"MariaDB's own tables cannot be made:\n{done.stderr[-3000:]}")

    def processes(self, lab: Lab) -> list[Process]:
        port = lab.port("mariadb")
        return [
            Process(name="mariadb", command=_command(lab), port=port, ready=lambda: _greets(port))
        ]

    def url(self, lab: Lab) -> str:
        return f"mysql://127.0.0.1:{lab.port('mariadb')}"


def _executable() -> str | None:
    """The server, also where a user's PATH lacks /usr/sbin, as Debian's does."""
    return shutil.which("mariadbd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")


def _command(lab: Lab) -> list[str]:
    executable = _executable()
    assert executable is not None, "check() comes first"
    return [executable, f"--defaults-file={lab.home('mariadb') / 'mariadb.cnf'}"]


def _data(lab: Lab) -> Path:
    return lab.home("mariadb") / "data"


def _greets(port: int) -> bool:
    """Whether the server speaks first, as it does when it is ready."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            return bool(connection.recv(16))
    except OSError:
        return False
