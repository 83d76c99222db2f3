"""Placement on SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.process import Process
from services.service import Service, run, served
from services.settings import authtoken, ini, profiler


class Placement(Service):
    """Resource providers and allocations."""

    name = packages = kind = "placement"
    needs = ("keystone",)
    ports = ("placement",)

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("placement")
        return {
            home / "placement.conf": ini(
                {
                    "placement_database": {
                        "connection": f"sqlite:///{home}/placement.db",
                        "sync_on_startup": False,
                    },
                    **authtoken(lab, "placement", "placement"),
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        manage = lab.environment("placement") / "bin" / "placement-manage"
        config = lab.home("placement") / "placement.conf"
        run([str(manage), "--config-file", str(config), "db", "sync"])

    def processes(self, lab: Lab) -> list[Process]:
        env = {"OS_PLACEMENT_CONFIG_DIR": str(lab.home("placement"))}
        return [served(lab, self, "placement.wsgi.api:application", env=env)]
