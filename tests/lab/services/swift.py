"""Swift with one copy of everything, in files with extended attributes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from services.faults import Unavailable
from services.lab import Lab
from services.process import Process
from services.service import INSIDE, Service, answers, run
from services.settings import authtoken, ini, service_user

#: Its servers behind the proxy.
STORAGE = ("account", "container", "object")
#: Filters of the proxy that are Swift's own, as its sample of a configuration has them.
FILTERS = ("catch_errors", "gatekeeper", "healthcheck", "listing_formats")


class Swift(Service):
    """Objects."""

    name = packages = "swift"
    kind = "object-store"
    needs = ("keystone",)
    path = "/v1/AUTH_$(project_id)s"
    ports = ("swift", *(f"swift-{kind}" for kind in STORAGE))

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("swift")
        hashed = {"swift_hash_path_prefix": "lab", "swift_hash_path_suffix": "lab"}
        policy = {"name": "one", "default": "yes"}
        return {
            home / "swift.conf": ini({"swift-hash": hashed, "storage-policy:0": policy}),
            home / "proxy.conf": ini(_proxy(lab)),
            **{home / f"{kind}.conf": ini(_storage(lab, kind)) for kind in STORAGE},
        }

    def initialise(self, lab: Lab) -> None:
        device = lab.home("swift") / "storage" / "device"
        device.mkdir(parents=True, exist_ok=True)
        try:
            os.setxattr(device, "user.lab", b"")
        except OSError as error:
            raise Unavailable(f"{device}: no extended attributes: {error.strerror}") from None

    def processes(self, lab: Lab) -> list[Process]:
        # ports of a lab may change
        rings = [f"{kind}={lab.port(f'swift-{kind}')}" for kind in STORAGE]
        home, tools = lab.home("swift"), lab.environment("swift") / "bin"
        run([str(tools / "python"), str(INSIDE / "swift_rings.py"), str(home), *rings])
        return [_process(lab, kind, f"swift-{kind}") for kind in STORAGE] + [
            _process(lab, "proxy", "swift")
        ]


def _process(lab: Lab, kind: str, name: str) -> Process:
    port = lab.port(name)
    server = lab.environment("swift") / "bin" / f"swift-{kind}-server"
    return Process(
        name=name,
        command=[str(server), str(lab.home("swift") / f"{kind}.conf"), "-v"],
        port=port,
        ready=lambda: answers(f"http://127.0.0.1:{port}/healthcheck"),
    )


def _common(lab: Lab, name: str) -> Mapping[str, object]:
    # without workers it does not become another user
    served = {"bind_ip": "127.0.0.1", "bind_port": lab.port(name), "workers": 0}
    return {**served, "swift_dir": lab.home("swift")}


def _storage(lab: Lab, kind: str) -> Mapping[str, Mapping[str, object]]:
    home = lab.home("swift")
    disk = {"devices": home / "storage", "mount_check": False, "disable_fallocate": True}
    return {
        "DEFAULT": {**_common(lab, f"swift-{kind}"), **disk},
        "pipeline:main": {"pipeline": f"healthcheck {kind}-server"},
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
        f"app:{kind}-server": {"use": f"egg:swift#{kind}", "recon_cache_path": home / "cache"},
    }


def _proxy(lab: Lab) -> Mapping[str, Mapping[str, object]]:
    token = authtoken(lab, "swift", "object-store")["keystone_authtoken"]
    factory = {"paste.filter_factory": "keystonemiddleware.auth_token:filter_factory"}
    return {
        "DEFAULT": _common(lab, "swift"),
        "pipeline:main": {
            "pipeline": " ".join(
                [*FILTERS, "authtoken", "s3api", "s3token", "keystoneauth", "slo", "proxy-server"]
            )
        },
        **{f"filter:{name}": {"use": f"egg:swift#{name}"} for name in (*FILTERS, "s3api", "slo")},
        # how long a token that is revoked is accepted; 300 s by default
        "filter:authtoken": {
            **factory,
            **token,
            "delay_auth_decision": True,
            "token_cache_time": 5,
        },
        # S3 at the root, with EC2 credentials of Keystone
        "filter:s3token": {
            "use": "egg:swift#s3token",
            **service_user(lab, "swift"),
            "auth_uri": f"{lab.keystone_url}/v3",
            "delay_auth_decision": True,
            # Keystone has one thread here; a request that it answers late would be refused
            "http_timeout": 60,
        },
        "filter:keystoneauth": {"use": "egg:swift#keystoneauth", "operator_roles": "admin, member"},
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": True},
    }
