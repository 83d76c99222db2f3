"""Glance on SQLite, its images in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.process import Process
from services.service import Service, run, served
from services.settings import authtoken, ini, profiler


class Glance(Service):
    """Images."""

    name = packages = "glance"
    kind = "image"
    needs = ("keystone",)
    ports = ("glance",)

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("glance")
        url = self.url(lab)
        return {
            home / "glance-api.conf": ini(
                {
                    "DEFAULT": {
                        "bind_host": "127.0.0.1",
                        "enabled_backends": "fs:file",
                        "public_endpoint": url,
                        "worker_self_reference_url": url,
                    },
                    # the second of two writers waits this number of seconds
                    "database": {"connection": f"sqlite:///{home}/glance.db?timeout=60"},
                    "glance_store": {"default_backend": "fs"},
                    "fs": _store(home, "images"),
                    "os_glance_staging_store": _store(home, "staging"),
                    "os_glance_tasks_store": _store(home, "tasks"),
                    "paste_deploy": {
                        "flavor": "keystone",
                        "config_file": lab.environment("glance")
                        / "etc/glance/glance-api-paste.ini",
                    },
                    "oslo_concurrency": {"lock_path": home / "lock"},
                    **authtoken(lab, "glance", "image"),
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        home = lab.home("glance")
        for name in ("images", "staging", "tasks"):
            (home / name).mkdir(mode=0o700, exist_ok=True)
        manage = lab.environment("glance") / "bin" / "glance-manage"
        run([str(manage), "--config-file", str(home / "glance-api.conf"), "db_sync"])

    def processes(self, lab: Lab) -> list[Process]:
        env = {"OS_GLANCE_CONFIG_DIR": str(lab.home("glance"))}
        # with faults it has many threads that only read: none should wait for another's turn
        application = "glance.wsgi.api" if lab.options.faults else "glance_application"
        return [served(lab, self, f"{application}:application", env=env, ready="/versions")]


def _store(home: Path, name: str) -> Mapping[str, object]:
    return {"filesystem_store_datadir": home / name}
