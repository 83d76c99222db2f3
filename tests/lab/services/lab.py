"""A lab's folder: its ports, secrets and options, kept from its first start on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import random
import secrets
import socket
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helpers.driver_environment import driver_environment
from servers import RedisServer
from services import environments
from services.process import Processes

#: Below the ports that the kernel gives to clients: those may be taken whenever the lab restarts.
PORTS = range(20_000, 30_000)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the services are run."""

    #: Whether OSProfiler is on.
    profiler: bool = True
    #: Whether they write traces with the driver of deploy/osprofiler.
    buffered: bool = False
    #: Threads of Nova's daemons: "threading", Nova's own choice, or "eventlet".
    nova_backend: str = "threading"
    #: Whether Mistral runs as it ships: its spans then go to its log only.
    mistral_stock: bool = False
    #: Whether services take OSProfiler's published default key in addition to the lab's.
    default_key: bool = False
    #: Whether Keystone keeps rows from request to request, as clouds have it with memcached; only
    #: tests ask for it, so that what docs/ says of a lab holds for Keystone's own default.
    cached: bool = False
    #: Whether `Lab.plant` can put faults into services.
    faults: bool = False


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A call of a service that is slow now and then; needs the option `faults`."""

    #: zaqar's commands to Redis, any other's statements to its SQLite.
    service: str
    #: Text that the affected calls contain.
    text: str
    share: float = 0.03
    delay_s: float = 0.15


class Lab:
    """The lab in a folder; a folder without one gets new secrets."""

    username = "admin"
    project_name = "admin"
    #: Name of both domains, the user's and the project's.
    domain_name = "Default"
    region_name = "RegionOne"

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.processes = Processes(self.folder)
        self._state = self.folder / "lab.json"
        if not self._state.exists():
            names = ("admin_password", "service_password", "redis_password", "hmac_key")
            self._save({"secrets": {name: secrets.token_hex(16) for name in names}, "ports": {}})

    # --- what clients need

    @property
    def password(self) -> str:
        """The administrator's password."""
        return self._secret("admin_password")

    @property
    def hmac_key(self) -> str:
        """Key that signs trace headers."""
        return self._secret("hmac_key")

    @property
    def auth_url(self) -> str:
        """Identity endpoint, with /v3."""
        return f"{self.keystone_url}/v3"

    @property
    def traces(self) -> RedisServer:
        """The Redis that holds traces; their keys do not expire, so it grows by 0.5 kB an event."""
        return RedisServer(
            self.home("redis"),
            password=self._secret("redis_password"),
            port=self.port("redis"),
            maxmemory="2gb",
        )

    @property
    def trace_store(self) -> str:
        """OSProfiler's connection string."""
        return self.redis_url(0)

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

    def openrc(self) -> str:
        """The same as variables for a shell."""
        variables = {
            "OS_AUTH_URL": self.auth_url,
            "OS_USERNAME": self.username,
            "OS_PASSWORD": self.password,
            "OS_PROJECT_NAME": self.project_name,
            "OS_USER_DOMAIN_NAME": self.domain_name,
            "OS_PROJECT_DOMAIN_NAME": self.domain_name,
            "OS_REGION_NAME": self.region_name,
            "OS_IDENTITY_API_VERSION": "3",
            "OSPROFILER_HMAC_KEY": self.hmac_key,
            "OSPROFILER_CONN_STR": self.trace_store,
        }
        return "".join(f"export {name}='{value}'\n" for name, value in variables.items())

    def write_clients_files(self) -> None:
        """Write deployment.json and openrc."""
        self.write(self.folder / "deployment.json", json.dumps(self.deployment(), indent=2) + "\n")
        self.write(self.folder / "openrc", self.openrc())

    # --- what tests of explanations need

    @property
    def fault_file(self) -> Path:
        """Where services look for the faults that they have at the moment."""
        return self.folder / "fault.json"

    def plant(self, *faults: Fault) -> None:
        """Have services show these faults, and no others, from now on."""
        self.write(self.fault_file, json.dumps([asdict(fault) for fault in faults]))

    # --- what services need

    @property
    def keystone_url(self) -> str:
        """Keystone without a version."""
        return f"http://127.0.0.1:{self.port('keystone')}"

    @property
    def service_password(self) -> str:
        """Password of all services' users."""
        return self._secret("service_password")

    def redis_url(self, database: int) -> str:
        """One of the databases of the lab's Redis."""
        return self.traces.url.removesuffix("0") + str(database)

    @property
    def options(self) -> Options:
        """How the services were last asked to run."""
        return Options(**self._load().get("options", {}))

    @options.setter
    def options(self, options: Options) -> None:
        self._save({**self._load(), "options": asdict(options)})

    def home(self, name: str) -> Path:
        """The folder of a service."""
        path = self.folder / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def environment(self, name: str) -> Path:
        """The virtual environment of a service."""
        return environments.environment(name)

    def interpreter(self, name: str) -> Path:
        """The Python that serves a service; it has the driver of deploy/osprofiler if wanted."""
        environment = self.environment(name)
        if not self.options.buffered:
            return environment / "bin" / "python"
        folder = self.home("with-driver") / name
        if (folder / "bin" / "python").exists():
            return folder / "bin" / "python"
        return driver_environment(folder, environment.glob("lib/python*/site-packages"))

    def port(self, name: str) -> int:
        """The port of that name; `choose_ports` has chosen it."""
        return int(self._load()["ports"][name])

    def choose_ports(self, names: Iterable[str]) -> None:
        """Choose ports for new names, and others where strangers took ours while nothing ran."""
        state = self._load()
        ports = state["ports"]
        idle = not self.processes.names()
        for name in names:
            if name not in ports or (idle and not _is_free(ports[name])):
                ports[name] = _free_port(ports.values())
        self._save(state)

    def write(self, path: Path, text: str) -> None:
        """Write a file that only we can read, whole or not at all."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.touch(mode=0o600)
        new.write_text(text)
        new.replace(path)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from starting and stopping this lab's services meanwhile."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _secret(self, name: str) -> str:
        return str(self._load()["secrets"][name])

    def _load(self) -> dict[str, dict[str, Any]]:
        return json.loads(self._state.read_text())  # type: ignore[no-any-return]

    def _save(self, state: dict[str, dict[str, Any]]) -> None:
        self.write(self._state, json.dumps(state, indent=2) + "\n")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port(taken: Collection[int]) -> int:
    while (port := random.choice(PORTS)) in taken or not _is_free(port):
        pass
    return port
