"""Users for a validation by Rally: what fails is an error, what stays is logged."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.edges.rally import importing
from osbench.edges.rally.cloud_validation import trial_users

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

DEPLOYMENT = Deployment.from_spec(
    "cloud",
    {
        "openstack": {
            "auth_url": "http://cloud/v3",
            "region_name": "north",
            "admin": {
                "username": "root",
                "password": "secret",
                "project_name": "admin",
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
        }
    },
)


def test_an_error_of_the_cleanup_does_not_hide_that_of_the_setup(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert importing.load()
    manager: Any = importlib.import_module("rally.task.context").ContextManager

    def fail(why: str) -> None:
        raise RuntimeError(why)

    monkeypatch.setattr(manager, "setup", lambda _: fail("no such domain"))
    monkeypatch.setattr(manager, "cleanup", lambda _: fail("no users to remove"))

    with (
        pytest.raises(ContextError, match=r"^deployment cloud cannot be used: .*no such domain"),
        trial_users(DEPLOYMENT),
    ):
        pass

    assert "no users to remove" in caplog.text
