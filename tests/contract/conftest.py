"""Surroundings of contract tests."""

from __future__ import annotations

import http.client

import pytest


@pytest.fixture(autouse=True)
def headers_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have requests take as many header lines as Python does; an import of swiftclient adds some."""
    monkeypatch.setattr(http.client, "_MAXHEADERS", 100)
