"""Neutron's API, with networks of type local and a mechanism driver that only logs.

It has routers, though no agent runs any, and one external network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.catalogue import admin
from services.lab import Lab
from services.mariadb import database_url
from services.process import Process
from services.rabbitmq import transport_url
from services.service import INSIDE, Service, run, served
from services.settings import authtoken, ini, profiler

EXTERNAL = "lab-external"


class Neutron(Service):
    """Networks; Nova asks for a server's ports even where it has none."""

    name = packages = "neutron"
    kind = "network"
    needs = ("keystone", "mariadb", "rabbitmq")
    ports = ("neutron",)

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("neutron")
        shipped = lab.environment("neutron") / "etc" / "neutron"
        return {
            home / "neutron.conf": ini(
                {
                    "DEFAULT": {
                        "state_path": home,
                        "auth_strategy": "keystone",
                        "core_plugin": "ml2",
                        "service_plugins": "router",
                        "transport_url": transport_url(lab),
                        "api_paste_config": shipped / "api-paste.ini",
                        "notify_nova_on_port_status_changes": False,
                        "notify_nova_on_port_data_changes": False,
                        "rpc_workers": 0,
                    },
                    "ml2": {
                        "type_drivers": "local",
                        "tenant_network_types": "local",
                        "mechanism_drivers": "logger",
                        "extension_drivers": "",
                    },
                    "database": {"connection": database_url(lab, "neutron")},
                    "oslo_concurrency": {"lock_path": home / "lock"},
                    **authtoken(lab, "neutron", "network"),
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        python = lab.environment("neutron") / "bin" / "python"
        run([str(python), str(INSIDE / "neutron_tables.py"), str(_config(lab))])

    def finish(self, lab: Lab) -> None:
        session = admin(lab)
        there = {"service_type": "network", "interface": "public"}
        path = f"/v2.0/networks?name={EXTERNAL}"
        if session.get(path, endpoint_filter=there).json()["networks"]:
            return
        network = {"name": EXTERNAL, "router:external": True}
        made = session.post("/v2.0/networks", endpoint_filter=there, json={"network": network})
        subnet = {
            "network_id": made.json()["network"]["id"],
            "ip_version": 4,
            "cidr": "172.24.0.0/16",
            "enable_dhcp": False,
        }
        session.post("/v2.0/subnets", endpoint_filter=there, json={"subnet": subnet})

    def processes(self, lab: Lab) -> list[Process]:
        env = {
            "OS_NEUTRON_CONFIG_DIR": str(_config(lab).parent),
            "OS_NEUTRON_CONFIG_FILES": _config(lab).name,
        }
        return [served(lab, self, "neutron_application:application", env=env, threads=8)]


def _config(lab: Lab) -> Path:
    return lab.home("neutron") / "neutron.conf"
