"""Keystone on SQLite with Fernet tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import requests

from services.lab import Lab
from services.process import Process
from services.service import Service, run_several, served
from services.settings import ini, profiler


class Keystone(Service):
    """Identity; all other services need it."""

    name = packages = "keystone"
    needs = ("redis",)
    ports = ("keystone",)
    path = "/v3"

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("keystone")
        return {
            home / "keystone.conf": ini(
                {
                    "database": {"connection": f"sqlite:///{home}/keystone.db"},
                    "token": {"expiration": 14400},
                    "fernet_tokens": {"key_repository": home / "fernet-keys"},
                    "fernet_receipts": {"key_repository": home / "fernet-keys"},
                    "credential": {"key_repository": home / "credential-keys"},
                    # Keystone's default of 12 rounds costs 0.2 s of CPU a token; above 72 bytes
                    # bcrypt warns at each check.
                    "identity": {
                        "password_hash_algorithm": "bcrypt",
                        "password_hash_rounds": 4,
                        "max_password_length": 72,
                    },
                    # Keystone's own default: rows are cached within one request only. A request
                    # then makes some 80 statements, too many to make a thousand requests, and
                    # takes six times the CPU.
                    "cache": {
                        "enabled": True,
                        "backend": f"dogpile.cache.{'memory' if _is_cached(lab) else 'null'}",
                    },
                    **profiler(lab),
                }
            )
        }

    def initialise(self, lab: Lab) -> None:
        home = lab.home("keystone")
        for keys in ("fernet-keys", "credential-keys"):
            (home / keys).mkdir(mode=0o700, exist_ok=True)
        urls = [
            part
            for kind in ("admin", "internal", "public")
            for part in (f"--bootstrap-{kind}-url", f"{lab.auth_url}/")
        ]
        owner = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
        run_several(
            lab.environment("keystone") / "bin" / "python",
            "keystone.cmd.manage:main",
            home / "keystone.conf",
            [
                ["db_sync"],
                ["fernet_setup", *owner],
                ["credential_setup", *owner],
                ["bootstrap", "--bootstrap-region-id", lab.region_name, *urls],
            ],
            env={"OS_BOOTSTRAP_PASSWORD": lab.password},
        )

    def processes(self, lab: Lab) -> list[Process]:
        env = {"OS_KEYSTONE_CONFIG_DIR": str(lab.home("keystone"))}
        return [served(lab, self, "keystone.wsgi.api:application", env=env, ready="/v3")]

    def finish(self, lab: Lab) -> None:
        # A fresh Keystone sets its drivers and mappers up with the first requests; several of
        # them at once may get an HTTP 500.
        for _ in range(3):
            _ask_for_token(lab)


def _is_cached(lab: Lab) -> bool:
    return lab.options.cached or lab.options.faults


def _ask_for_token(lab: Lab) -> None:
    domain = {"name": lab.domain_name}
    user = {"name": lab.username, "domain": domain, "password": lab.password}
    scope = {"project": {"name": lab.project_name, "domain": domain}}
    identity = {"methods": ["password"], "password": {"user": user}}
    body = {"auth": {"identity": identity, "scope": scope}}
    requests.post(f"{lab.auth_url}/auth/tokens", json=body, timeout=60)
