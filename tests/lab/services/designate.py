"""Designate with its fake back end, and a name server that has the zones of its database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.mariadb import database_url
from services.process import Process, says
from services.rabbitmq import transport_url
from services.service import INSIDE, Service, daemon, run, run_several, served
from services.settings import authtoken, ini, profiler

DAEMONS = ("central", "worker", "producer")


class Designate(Service):
    """Zones that no resolver finds."""

    name = packages = "designate"
    kind = "dns"
    needs = ("keystone", "mariadb", "rabbitmq")
    ports = ("designate", "designate-nameserver")
    at_once = True
    by_name = True

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("designate")
        shipped = lab.environment("designate") / "etc" / "designate"
        soon = {"poll_delay": 0, "poll_retry_interval": 1}
        return {
            home / "api-paste.ini": (shipped / "api-paste.ini").read_text(),
            _pools(lab): _pool(lab.port("designate-nameserver")),
            _config(lab): ini(
                {
                    "DEFAULT": {
                        "state_path": home,
                        "host": "lab",
                        "transport_url": transport_url(lab),
                    },
                    "service:api": {"auth_strategy": "keystone", "api_base_uri": self.url(lab)},
                    **{f"service:{name}": {"workers": 1} for name in DAEMONS},
                    "service:worker": {"workers": 1, **soon},
                    "storage:sqlalchemy": {"connection": database_url(lab, "designate")},
                    "oslo_concurrency": {"lock_path": home / "lock"},
                    **authtoken(lab, "designate", "dns"),
                    **profiler(lab),
                }
            ),
        }

    def initialise(self, lab: Lab) -> None:
        python = lab.environment("designate") / "bin" / "python"
        run_several(python, "designate.cmd.manage:main", _config(lab), [["database", "sync"]])

    def processes(self, lab: Lab) -> list[Process]:
        env = {"OS_DESIGNATE_CONFIG_DIR": str(lab.home("designate"))}
        application = "designate.wsgi.api:application"
        return [
            _nameserver(lab),
            *(
                daemon(
                    lab, "designate", f"designate-{name}", _config(lab), f"Starting {name} service"
                )
                for name in DAEMONS
            ),
            served(lab, self, application, env=env, threads=8),
        ]

    def finish(self, lab: Lab) -> None:
        manage = lab.environment("designate") / "bin" / "designate-manage"
        config = ["--config-file", str(_config(lab))]
        run([str(manage), *config, "pool", "update", "--file", str(_pools(lab))])


def _config(lab: Lab) -> Path:
    return lab.home("designate") / "designate.conf"


def _pools(lab: Lab) -> Path:
    return lab.home("designate") / "pools.yaml"


def _pool(port: int) -> str:
    """Designate's default pool, with the lab's name server; JSON is YAML."""
    server = {"host": "127.0.0.1", "port": port}
    pool = {
        "name": "default",
        "description": "the lab's pool",
        "attributes": {},
        "ns_records": [{"hostname": "ns.lab.example.", "priority": 1}],
        "nameservers": [server],
        "targets": [
            {
                "type": "fake",
                "description": "notifies no server",
                "masters": [server],
                "options": server,
            }
        ],
    }
    return json.dumps([pool], indent=2) + "\n"


def _nameserver(lab: Lab) -> Process:
    python = lab.environment("designate") / "bin" / "python"
    port = lab.port("designate-nameserver")
    return Process(
        name="designate-nameserver",
        command=[
            str(python),
            str(INSIDE / "designate_nameserver.py"),
            str(port),
            str(_config(lab)),
        ],
        ready=says(lab.processes.log("designate-nameserver"), "ready"),
    )
