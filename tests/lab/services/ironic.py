"""Ironic with its fake hardware, API and conductor in one process on SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.process import Process
from services.service import Service, answers, run
from services.settings import authtoken, ini, profiler

#: Kinds of interfaces of a node that have a fake one.
INTERFACES = (
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "power",
    "raid",
    "rescue",
    "vendor",
)
HARDWARE = "fake-hardware"


class Ironic(Service):
    """Nodes without machines."""

    name = packages = "ironic"
    kind = "baremetal"
    needs = ("keystone",)
    ports = ("ironic",)
    by_name = True

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("ironic")
        return {
            _config(lab): ini(
                {
                    "DEFAULT": {
                        "auth_strategy": "keystone",
                        "host": "lab",
                        "my_ip": "127.0.0.1",
                        "state_path": home,
                        "tempdir": home,
                        # API and conductor are one process, the only way on SQLite
                        "rpc_transport": "none",
                        "enabled_hardware_types": HARDWARE,
                        **{f"enabled_{kind}_interfaces": "fake" for kind in INTERFACES},
                        "enabled_network_interfaces": "noop",
                        "enabled_storage_interfaces": "noop",
                    },
                    "api": {"host_ip": "127.0.0.1", "port": lab.port("ironic")},
                    "database": {"connection": f"sqlite:///{home}/ironic.db"},
                    "dhcp": {"dhcp_provider": "none"},
                    "oslo_concurrency": {"lock_path": home / "lock"},
                    **authtoken(lab, "ironic", "baremetal"),
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        command = lab.environment("ironic") / "bin" / "ironic-dbsync"
        run([str(command), "--config-file", str(_config(lab)), "create_schema"])

    def processes(self, lab: Lab) -> list[Process]:
        command = lab.environment("ironic") / "bin" / "ironic"
        port = lab.port("ironic")
        return [
            Process(
                name="ironic",
                command=[str(command), "--config-file", str(_config(lab))],
                port=port,
                ready=lambda: answers(f"http://127.0.0.1:{port}/v1"),
            )
        ]


def _config(lab: Lab) -> Path:
    return lab.home("ironic") / "ironic.conf"
