"""Checking arguments takes no HTTP client: the coordinator imports none, workers theirs at once."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from osbench.worker.scenarios.http_flow import HttpFlow
from osbench.worker.scenarios.http_requests import HttpRequests

HEAVY = ("requests", "urllib3", "pycurl", "jsonpath", "osbench.worker.http.http_clients")
CHECKED = f"""
import sys
from osbench.worker.scenarios.http_flow import HttpFlow
from osbench.worker.scenarios.http_requests import HttpRequests
assert HttpFlow.check_arguments("run", {{"steps": [{{"path": "/a"}}]}}) == []
assert HttpRequests.check_arguments("check_request", {{"url": "http://a.example/"}}) == []
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_the_checks_of_arguments_import_no_http_client() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECKED], check=False, capture_output=True, text=True
    )

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("cls", [HttpFlow, HttpRequests])
def test_the_modules_for_workers_are_there(cls: type[HttpFlow | HttpRequests]) -> None:
    assert [importlib.import_module(name).__name__ for name in cls.WORKER_MODULES] == list(
        cls.WORKER_MODULES
    )
