"""A proxy of the environment: note, way and message are one decision."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ProxyError
from requests.models import PreparedRequest

from helpers.recording_server import RecordingServer, recording_server
from osbench.common.network.causes import root_cause
from osbench.common.network.environment_proxy import proxy_of
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.protocol.exchanges import EXCHANGE, OWN
from osbench.worker.http.http_clients import HttpClients

#: By loop and client; `auth` is for requests alone.
WAYS = [
    pytest.param(in_loop, options, id=f"{where}-{client}")
    for in_loop, where in ((True, "loop"), (False, "thread"))
    for options, client in (({}, "libcurl"), ({"auth": ["me", "pw"]}, "requests"))
]


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as running:
        yield running


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def refusing() -> int:
    """A port of loopback that refuses: one that is free, and bound to nothing that listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def status(url: str, *, in_loop: bool, options: dict[str, Any]) -> tuple[int, str]:
    """The status of a request, and which client its record names; "" for our own."""
    clients, recorder = HttpClients([]), Recorder(Names())
    if in_loop:
        code = asyncio.run(clients.status("GET", url, [], options, recorder))
    else:
        code = clients.blocking_status("GET", url, [], options, recorder)
    (found,) = np.frombuffer(bytes(recorder.exchanges), EXCHANGE)
    number = found["client"]
    return code, "" if number == OWN else recorder.names.names[number]


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize(("in_loop", "options"), WAYS)
def test_a_variable_in_small_letters_or_capitals_leads_through_the_proxy(
    server, monkeypatch, variable, in_loop, options
):
    monkeypatch.setenv(variable, f"http://me:hunter2@127.0.0.1:{server.server_port}")

    code, client = status("http://shop.invalid/a", in_loop=in_loop, options=options)

    assert (code, [one.path for one in server.taken()]) == (200, ["http://shop.invalid/a"])
    if not options:
        assert client == f"libcurl: a proxy of the environment, {server.url}"


@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize("hosts", ["127.0.0.1", "127.0.0.0/8", "*", "shop.invalid,127.0.0.1"])
@pytest.mark.parametrize("in_loop", [True, False])
def test_hosts_without_a_proxy_are_asked_directly(server, monkeypatch, variable, hosts, in_loop):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{refusing()}")
    monkeypatch.setenv(variable, hosts)

    assert status(server.url + "/a", in_loop=in_loop, options={}) == (200, "")


def test_a_proxy_for_another_scheme_is_none(server, monkeypatch):
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{refusing()}")

    assert status(server.url + "/a", in_loop=False, options={}) == (200, "")


@pytest.mark.parametrize(("in_loop", "options"), WAYS)
def test_a_proxy_that_refuses_is_what_is_named(monkeypatch, in_loop, options):
    port = refusing()
    monkeypatch.setenv("HTTP_PROXY", f"http://me:hunter2@127.0.0.1:{port}")

    with pytest.raises(ConnectionError) as failure:
        status("http://shop.invalid/a", in_loop=in_loop, options=options)

    said = str(failure.value)
    place = f"GET http://shop.invalid/a: cannot connect to the proxy http://127.0.0.1:{port}: "
    assert said.startswith(place)
    assert "Connection refused" in said
    assert "hunter2" not in said


def test_a_proxy_that_the_task_gives_is_named_alike():
    proxy = f"http://me:hunter2@127.0.0.1:{refusing()}"

    with pytest.raises(ConnectionError, match="cannot connect to the proxy") as failure:
        status("http://shop.invalid/a", in_loop=False, options={"proxies": {"http": proxy}})

    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize("in_loop", [True, False])
def test_a_proxy_without_a_known_name_is_named(monkeypatch, in_loop):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")

    with pytest.raises(ConnectionError, match=r"to the proxy http://proxy\.invalid:3128: its name"):
        status("http://shop.invalid/a", in_loop=in_loop, options={})


@pytest.mark.parametrize("in_loop", [True, False])
def test_a_redirect_does_not_leave_the_way_without_a_word(server, monkeypatch, in_loop):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{refusing()}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    url = f"{server.url}/to?code=302&url=http://shop.invalid/b"

    with pytest.raises(ConnectionError, match="for which the environment has a proxy"):
        status(url, in_loop=in_loop, options={})


@pytest.mark.parametrize(
    ("value", "proxy"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("proxy:3128", "http://proxy:3128"),
        ("proxy", "http://proxy:80"),
        ("https://proxy", "https://proxy:443"),
        ("http://me:pw@[::1]", "http://me:pw@[::1]:80"),
        ("socks5h://proxy", "socks5h://proxy"),
    ],
)
def test_all_clients_are_told_the_same_port(monkeypatch, value, proxy):
    monkeypatch.setenv("HTTP_PROXY", value)

    assert proxy_of("http://shop.invalid/") == proxy


@pytest.mark.parametrize("value", ["http://me:pw@proxy:many", "http://:3128", "http://[::1"])
def test_a_proxy_that_is_no_url_is_told_without_what_it_holds(monkeypatch, value):
    monkeypatch.setenv("HTTP_PROXY", value)

    with pytest.raises(ValueError, match="correct http_proxy") as failure:
        proxy_of("http://shop.invalid/")

    assert "pw" not in str(failure.value)


def test_the_cause_of_what_a_client_library_raises_names_the_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://me:hunter2@127.0.0.1:3128")
    request = PreparedRequest()
    request.prepare(method="GET", url="http://keystone.invalid/v3")
    inner = ProxyError(OSError("Connection refused"), request=request)
    outer = RequestsConnectionError("outer")
    outer.__cause__ = inner
    inner.__cause__ = OSError("Connection refused")

    assert root_cause(outer) == (
        "cannot connect to the proxy http://127.0.0.1:3128: Connection refused"
    )
