"""Nova with its fake driver: API, conductor, scheduler and one compute host."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from services.catalogue import admin
from services.faults import NotStarted
from services.lab import Lab
from services.mariadb import database_url
from services.process import Process
from services.rabbitmq import transport_url
from services.service import Service, daemon, run_several, served
from services.settings import Sections, authtoken, ini, profiler, service_user

#: What a daemon logs when it has begun to take messages.
STARTED = {
    "nova-conductor": "Starting conductor",
    "nova-scheduler": "Starting scheduler",
    "nova-compute": "Looking for unclaimed instances",
}
HOST = "lab"
IMAGE = "lab-image"
#: RAM in MiB and disk in GiB; a flavor without a disk is refused to users who are no admins.
FLAVORS = {"m1.tiny": (64, 1), "m1.small": (128, 2)}


class Nova(Service):
    """Servers that take no resources."""

    name = packages = "nova"
    kind = "compute"
    path = "/v2.1"
    needs = ("keystone", "mariadb", "rabbitmq", "placement", "glance", "neutron")
    ports = ("nova",)
    at_once = True

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("nova")
        databases = {
            "api_database": {"connection": database_url(lab, "nova_api")},
            "database": {"connection": database_url(lab, "nova")},
        }
        return {
            home / "nova.conf": ini({**_common(lab), **databases}),
            # A compute service that knows the databases complains about it.
            home / "nova-compute.conf": ini(_common(lab)),
            home / "api-paste.ini": (
                lab.environment("nova") / "etc" / "nova" / "api-paste.ini"
            ).read_text(),
        }

    def initialise(self, lab: Lab) -> None:
        _manage(
            lab, "api_db sync", "cell_v2 map_cell0", "db sync", "cell_v2 create_cell --name cell1"
        )

    def processes(self, lab: Lab) -> list[Process]:
        env = {
            "OS_NOVA_CONFIG_DIR": str(lab.home("nova")),
            # The daemons only: waitress has its own threads.
            "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1",
        }
        daemons = [_daemon(lab, name, text) for name, text in STARTED.items()]
        application = "nova.wsgi.osapi_compute:application"
        return [*daemons, served(lab, self, application, env=env, threads=8)]

    def finish(self, lab: Lab) -> None:
        mapped = lab.home("nova") / ".mapped"
        deadline = time.monotonic() + 180.0
        while not mapped.exists():
            known = _manage(lab, "cell_v2 discover_hosts", "cell_v2 list_hosts")
            if f" {HOST} " in known:
                mapped.touch()
            elif time.monotonic() > deadline:
                raise NotStarted("nova: the compute host never reported to the conductor")
        _make_flavors_and_image(lab)


def _common(lab: Lab) -> Sections:
    home = lab.home("nova")
    user = {**service_user(lab, "nova"), "valid_interfaces": "public"}
    unlimited = dict.fromkeys(("instances", "cores", "ram"), -1)
    return {
        "DEFAULT": {
            "state_path": home,
            "my_ip": "127.0.0.1",
            "host": HOST,
            "transport_url": transport_url(lab),
            # Another fake driver has a new node id at each start, which the second start refuses.
            "compute_driver": "fake.FakeDriverWithoutFakeNodes",
            "concurrency_backend": lab.options.nova_backend,
            # there is no other host to resize to
            "allow_resize_to_same_host": True,
        },
        "api": {"auth_strategy": "keystone"},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1},
        "oslo_concurrency": {"lock_path": home / "lock"},
        "vnc": {"enabled": False},
        "spice": {"enabled": False},
        "quota": unlimited,
        "wsgi": {"api_paste_config": home / "api-paste.ini"},
        **dict.fromkeys(("glance", "placement", "neutron"), user),
        "service_user": {**user, "send_service_user_token": True},
        **authtoken(lab, "nova", "compute"),
        **profiler(lab),
    }


def _manage(lab: Lab, *calls: str) -> str:
    """What these calls of nova-manage print."""
    return run_several(
        lab.environment("nova") / "bin" / "python",
        "nova.cmd.manage:main",
        lab.home("nova") / "nova.conf",
        [call.split() for call in calls],
    )


def _daemon(lab: Lab, name: str, text: str) -> Process:
    config = "nova-compute.conf" if name == "nova-compute" else "nova.conf"
    return daemon(lab, "nova", name, lab.home("nova") / config, text)


def _make_flavors_and_image(lab: Lab) -> None:
    session = admin(lab)
    compute = {"service_type": "compute", "interface": "public"}
    known = session.get("/flavors", endpoint_filter=compute).json()["flavors"]
    for name in FLAVORS.keys() - {flavor["name"] for flavor in known}:
        ram, disk = FLAVORS[name]
        flavor = {"name": name, "ram": ram, "vcpus": 1, "disk": disk}
        session.post("/flavors", endpoint_filter=compute, json={"flavor": flavor})
    images = {"service_type": "image", "interface": "public"}
    if session.get(f"/v2/images?name={IMAGE}", endpoint_filter=images).json()["images"]:
        return
    body = {
        "name": IMAGE,
        "disk_format": "raw",
        "container_format": "bare",
        "visibility": "public",
    }
    image = session.post("/v2/images", endpoint_filter=images, json=body).json()["id"]
    session.put(
        f"/v2/images/{image}/file",
        endpoint_filter=images,
        data=b"\0" * 1024,
        headers={"Content-Type": "application/octet-stream"},
    )
