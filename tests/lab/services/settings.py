"""Configuration files of OpenStack services, and the sections that most of them have."""

from __future__ import annotations

from collections.abc import Mapping

from services.lab import Lab

Sections = Mapping[str, Mapping[str, object]]


def ini(sections: Sections) -> str:
    """The text of a file with these sections."""
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for name, value in values.items():
            lines.append(f"{name} = {str(value).lower() if isinstance(value, bool) else value}")
    return "\n".join(lines) + "\n"


def profiler(lab: Lab) -> Sections:
    """OSProfiler's section, with the lab's store and key."""
    return {
        "profiler": {
            "enabled": lab.options.profiler,
            "hmac_keys": f"{lab.hmac_key},SECRET_KEY" if lab.options.default_key else lab.hmac_key,
            "trace_sqlalchemy": True,
            "connection_string": ("osbench+" if lab.options.buffered else "") + lab.trace_store,
        }
    }


def service_user(lab: Lab, name: str) -> Mapping[str, object]:
    """How the user of a service gets its tokens."""
    return {
        "auth_type": "password",
        "auth_url": lab.keystone_url,
        "username": name,
        "password": lab.service_password,
        "user_domain_name": lab.domain_name,
        "project_name": "service",
        "project_domain_name": lab.domain_name,
        "region_name": lab.region_name,
    }


def authtoken(lab: Lab, name: str, kind: str) -> Sections:
    """How a service has the tokens of its callers validated."""
    return {
        "keystone_authtoken": {
            **service_user(lab, name),
            "www_authenticate_uri": lab.keystone_url,
            "service_type": kind,
            "service_token_roles_required": True,
        }
    }
