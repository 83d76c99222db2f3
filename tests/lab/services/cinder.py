"""Cinder with its logging driver: API, scheduler and one volume back end that keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.catalogue import admin
from services.lab import Lab
from services.mariadb import database_url
from services.process import Process
from services.rabbitmq import transport_url
from services.service import Service, daemon, run_several, served
from services.settings import authtoken, ini, profiler, service_user

BACKEND = "logging"
#: What a daemon logs when it has begun to take messages.
STARTED = {
    "cinder-scheduler": "Starting cinder-scheduler node",
    "cinder-volume": "Driver initialization completed successfully",
}


class Cinder(Service):
    """Volumes of which only the records are real."""

    name = packages = "cinder"
    kind = "block-storage"
    path = "/v3"
    needs = ("keystone", "mariadb", "rabbitmq", "glance")
    ports = ("cinder",)
    at_once = True

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("cinder")
        shipped = lab.environment("cinder") / "etc" / "cinder"
        return {
            _config(lab): ini(
                {
                    "DEFAULT": {
                        "state_path": home,
                        "my_ip": "127.0.0.1",
                        "host": "lab",
                        "auth_strategy": "keystone",
                        "transport_url": transport_url(lab),
                        "api_paste_config": shipped / "api-paste.ini",
                        "resource_query_filters_file": shipped / "resource_filters.json",
                        "enabled_backends": BACKEND,
                        "default_volume_type": BACKEND,
                        "glance_api_servers": f"http://127.0.0.1:{lab.port('glance')}",
                    },
                    BACKEND: {
                        "volume_driver": "cinder.tests.fake_driver.FakeLoggingVolumeDriver",
                        "volume_backend_name": BACKEND,
                    },
                    "database": {"connection": database_url(lab, "cinder")},
                    "coordination": {"backend_url": f"file://{home}/coordination"},
                    "oslo_concurrency": {"lock_path": home / "lock"},
                    "service_user": {
                        **service_user(lab, "cinder"),
                        "send_service_user_token": True,
                    },
                    **authtoken(lab, "cinder", "block-storage"),
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        python = lab.environment("cinder") / "bin" / "python"
        run_several(python, "cinder.cmd.manage:main", _config(lab), [["db", "sync"]])

    def processes(self, lab: Lab) -> list[Process]:
        config = _config(lab)
        daemons = [daemon(lab, "cinder", name, config, text) for name, text in STARTED.items()]
        # Its WSGI application takes no path of a file: it looks below its user's home.
        env = {"HOME": str(lab.home("cinder"))}
        application = "cinder.wsgi.api:application"
        return [*daemons, served(lab, self, application, env=env, threads=8)]

    def finish(self, lab: Lab) -> None:
        session = admin(lab)
        volumes = {"service_type": "block-storage", "interface": "public"}
        known = session.get("/types", endpoint_filter=volumes).json()["volume_types"]
        if BACKEND not in {kind["name"] for kind in known}:
            body = {"volume_type": {"name": BACKEND}}
            session.post("/types", endpoint_filter=volumes, json=body)


def _config(lab: Lab) -> Path:
    return lab.home("cinder") / ".cinder" / "cinder.conf"
