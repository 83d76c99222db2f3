"""Zaqar: queues in SQLite, messages in Redis, as Debian has no MongoDB.

Where faults can be injected its queues are in Redis, too, which is faster, and a proxy that delays
requests is in front of its messages.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.process import Process
from services.service import INSIDE, Service, run, served
from services.settings import authtoken, ini, profiler


class Zaqar(Service):
    """Messaging."""

    name = packages = "zaqar"
    kind = "messaging"
    needs = ("keystone",)
    ports = ("zaqar", "zaqar-store")
    #: What it ships, changed in memory: inside/zaqar_application.py says why.
    application = "zaqar_application:application"

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("zaqar")
        traced = profiler(lab)["profiler"]
        switches = ("wsgi_transport", "message_store", "management_store")
        return {
            # Its WSGI application takes no path of a file: it looks below its user's home.
            home / ".zaqar" / "zaqar.conf": ini(
                {
                    "DEFAULT": {
                        "auth_strategy": "keystone",
                        "pooling": False,
                        "admin_mode": True,
                        "unreliable": True,
                        "enable_checksum": False,
                    },
                    "drivers": {
                        "transport": "wsgi",
                        "message_store": "redis",
                        "management_store": "redis" if lab.options.faults else "sqlalchemy",
                    },
                    "drivers:transport:wsgi": {"bind": "127.0.0.1", "port": lab.port("zaqar")},
                    "drivers:management_store:sqlalchemy": {"uri": _database(lab)},
                    "drivers:message_store:redis": {"uri": _messages(lab)},
                    "drivers:management_store:redis": {"uri": lab.redis_url(2)},
                    "cache": {"backend": "dogpile.cache.memory"},
                    "signed_url": {"secret_key": lab.service_password},
                    **authtoken(lab, "zaqar", "messaging"),
                    "profiler": {**traced, **{f"trace_{switch}": True for switch in switches}},
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        python = lab.environment("zaqar") / "bin" / "python"
        run([str(python), str(INSIDE / "zaqar_tables.py"), _database(lab)])

    def processes(self, lab: Lab) -> list[Process]:
        env = {"HOME": str(lab.home("zaqar"))}
        zaqar = served(lab, self, self.application, env=env, ready="/v2/ping")
        return [_slow_store(lab), zaqar] if lab.options.faults else [zaqar]


def _slow_store(lab: Lab) -> Process:
    port = lab.port("zaqar-store")
    command = [sys.executable, str(INSIDE / "slow_store.py"), str(port), str(lab.port("redis"))]
    return Process(
        name="zaqar-store",
        command=[*command, str(lab.fault_file), "zaqar"],
        port=port,
        ready=lambda: True,
    )


def _messages(lab: Lab) -> str:
    if not lab.options.faults:
        return lab.redis_url(1)
    return lab.redis_url(1).replace(f":{lab.port('redis')}/", f":{lab.port('zaqar-store')}/")


def _database(lab: Lab) -> str:
    return f"sqlite:///{lab.home('zaqar')}/zaqar.db"
