"""Surroundings of tests of the worker's side of a cloud."""

from __future__ import annotations

import http.client

import pytest


@pytest.fixture(autouse=True)
def headers_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have requests take as many header lines as Python does; swiftclient allows more."""
    monkeypatch.setattr(http.client, "_MAXHEADERS", 100)
