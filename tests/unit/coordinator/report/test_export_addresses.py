"""The address of an exporter is checked before the run, and shown without its password."""

from __future__ import annotations

from typing import ClassVar

import pytest

from osbench.common.errors import UsageError
from osbench.common.plugin.exporter import Exporter
from osbench.coordinator.report.exporting import Export


class Poster(Exporter):
    """It sends to web servers."""

    NAME: ClassVar[str] = "poster"
    SCHEMES: ClassVar[tuple[str, ...]] = ("http", "https")

    def send(self, run: object, url: str) -> str:
        return url


class Sender(Exporter):
    """Of a user: it sends to any address."""

    NAME: ClassVar[str] = "sender"

    def send(self, run: object, url: str) -> str:
        return url


@pytest.mark.parametrize(
    ("exporter", "url", "said"),
    [
        (Poster, "ftp://h", "must begin with one of http://, https://"),
        (Poster, "http://u:hunter@2@h/", "an @ that does not end user and password"),
        (Poster, "http://h:99999/", "a port that is not a number"),
        (Sender, "https://127.1/", "not an IPv4 address"),
    ],
)
def test_a_malformed_address_is_refused(exporter: type[Exporter], url: str, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Export(exporter({}), url).check()

    assert said in str(refusal.value)
    assert "hunter" not in str(refusal.value)


def test_other_addresses_are_taken() -> None:
    Export(Poster({}), "https://hooks.example/path?team=1").check()
    Export(Sender({}), "queue://anything at all").check()
