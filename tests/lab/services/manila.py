"""Manila with its dummy driver, on a back end with share servers and on one without."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.catalogue import admin
from services.faults import NotStarted
from services.lab import Lab
from services.mariadb import database_url
from services.process import Process
from services.rabbitmq import transport_url
from services.service import Service, daemon, run_several, served
from services.settings import authtoken, ini, profiler

#: Whether a back end handles share servers, by its name, which is the name of its share type, too.
BACKENDS = {"with-servers": True, "without-servers": False}
DEFAULT_TYPE = "without-servers"
#: The log line of a daemon that has begun to take messages.
STARTED = {
    "manila-scheduler": "Starting manila-scheduler node",
    "manila-share": "Finished initialization of driver",
}
DRIVER = "manila.tests.share.drivers.dummy.DummyDriver"
#: Networks of share servers, by the last part of their section.
NETWORKS = {"network": "10.100.0", "admin": "10.101.0"}


class Manila(Service):
    """Shares of which only the records are real."""

    name = packages = "manila"
    kind = "shared-file-system"
    path = "/v2"
    needs = ("keystone", "mariadb", "rabbitmq")
    ports = ("manila",)
    at_once = True
    by_name = True

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("manila")
        pipeline = lab.environment("manila") / "etc" / "manila" / "api-paste.ini"
        return {
            _config(lab): ini(
                {
                    "DEFAULT": {
                        "state_path": home,
                        "my_ip": "127.0.0.1",
                        "host": "lab",
                        "auth_strategy": "keystone",
                        "transport_url": transport_url(lab),
                        "api_paste_config": pipeline,
                        "enabled_share_backends": ",".join(BACKENDS),
                        "default_share_type": DEFAULT_TYPE,
                    },
                    **{name: _backend(name, BACKENDS[name]) for name in BACKENDS},
                    **{name: _network(NETWORKS[name]) for name in NETWORKS},
                    "database": {"connection": database_url(lab, "manila")},
                    "coordination": {"backend_url": f"file://{home}/coordination"},
                    "oslo_concurrency": {"lock_path": home / "lock"},
                    **authtoken(lab, "manila", "shared-file-system"),
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        python = lab.environment("manila") / "bin" / "python"
        run_several(python, "manila.cmd.manage:main", _config(lab), [["db", "sync"]])

    def processes(self, lab: Lab) -> list[Process]:
        config = _config(lab)
        daemons = [daemon(lab, "manila", name, config, text) for name, text in STARTED.items()]
        # Its WSGI application takes no path of a file: it looks below its user's home.
        env = {"HOME": str(lab.home("manila"))}
        return [*daemons, served(lab, self, "manila.wsgi.api:application", env=env, threads=8)]

    def finish(self, lab: Lab) -> None:
        session = admin(lab)
        shares: dict[str, Any] = {"service_type": self.kind, "interface": "public"}
        version = {"X-OpenStack-Manila-API-Version": "2.50"}
        known = session.get("/types", endpoint_filter=shares, headers=version).json()["share_types"]
        for name in BACKENDS.keys() - {kind["name"] for kind in known}:
            specs = {"driver_handles_share_servers": BACKENDS[name], "share_backend_name": name}
            body = {"share_type": {"name": name, "extra_specs": specs}}
            session.post("/types", endpoint_filter=shares, headers=version, json=body)
        deadline = time.monotonic() + 120.0
        # before that the scheduler finds no host for a share
        while len(_pools(lab, shares, version)) < len(BACKENDS):
            if time.monotonic() > deadline:
                raise NotStarted("manila: the back ends never reported to the scheduler")
            time.sleep(0.5)


def _pools(lab: Lab, shares: dict[str, Any], version: dict[str, str]) -> list[Any]:
    response = admin(lab).get("/scheduler-stats/pools", endpoint_filter=shares, headers=version)
    found: list[Any] = response.json()["pools"]
    return found


def _config(lab: Lab) -> Path:
    return lab.home("manila") / ".manila" / "manila.conf"


def _backend(name: str, has_servers: bool) -> dict[str, object]:
    found: dict[str, object] = {
        "share_driver": DRIVER,
        "share_backend_name": name,
        "driver_handles_share_servers": has_servers,
        # its own delays are some seconds for each call
        "dummy_driver_default_driver_method_delay": 0,
        "dummy_driver_driver_methods_delays": "create_share:0.2",
    }
    if has_servers:
        found |= {
            "network_config_group": "network",
            "admin_network_config_group": "admin",
        }
    return found


def _network(prefix: str) -> dict[str, object]:
    return {
        # needs no Neutron
        "network_api_class": "manila.network.standalone_network_plugin.StandaloneNetworkPlugin",
        "standalone_network_plugin_gateway": f"{prefix}.1",
        "standalone_network_plugin_mask": 24,
        "standalone_network_plugin_allowed_ip_ranges": f"{prefix}.10-{prefix}.250",
    }
