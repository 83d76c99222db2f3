"""Barbican on SQLite, its secrets encrypted by its own plug-in simple_crypto."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.process import Process
from services.service import Service, run, served
from services.settings import authtoken, ini


class Barbican(Service):
    """Secrets; orders are carried out within their request."""

    name = packages = "barbican"
    kind = "key-manager"
    needs = ("keystone",)
    ports = ("barbican",)
    by_name = True

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("barbican")
        # a key of 32 bytes, which the password has as text
        key = base64.urlsafe_b64encode(lab.service_password.encode()).decode()
        return {
            # Its modules read it separately, each below its user's home.
            home / ".barbican" / "barbican.conf": ini(
                {
                    "DEFAULT": {"host_href": self.url(lab)},
                    "database": {"connection": f"sqlite:///{home}/barbican.db"},
                    "simple_crypto_plugin": {"kek": key},
                    **authtoken(lab, "barbican", "key-manager"),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        manage = lab.environment("barbican") / "bin" / "barbican-db-manage"
        run([str(manage), "upgrade"], env=_home(lab))

    def processes(self, lab: Lab) -> list[Process]:
        pipeline = lab.environment("barbican") / "etc" / "barbican" / "barbican-api-paste.ini"
        env = {**_home(lab), "LAB_PASTE": str(pipeline)}
        return [served(lab, self, "barbican_application:application", env=env)]


def _home(lab: Lab) -> Mapping[str, str]:
    return {"HOME": str(lab.home("barbican"))}
