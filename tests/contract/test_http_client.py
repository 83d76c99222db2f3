"""Our HTTP client, over each of its drivers, and requests make the same of a hostile server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from helpers.driven import DRIVERS, LoopDriven, driven
from osbench.worker.http.other_clients.curl_client import CurlClient
from osbench.worker.http.socket_client import SocketClient
from servers.child import PATIENCE_S
from servers.hostile_http import ANSWERS, BODY, FINE, HostileServer, hostile_server

#: Outcome and status with our client and with requests, where they differ: what can be read in two
#: ways or is cut short is refused, and an answer before the answer is not the answer.
DIFFERENT = {
    "length-and-chunked": (("failed", 0), ("ok", 200)),
    "length-no-number": (("failed", 0), ("ok", 200)),
    "folded": (("failed", 0), ("ok", 200)),
    "bare-line-feeds": (("failed", 0), ("ok", 200)),
    "half-a-head": (("failed", 0), ("ok", 200)),
    "hints": (("ok", 200), ("ok", 103)),
    "gzip-cut": (("failed", 0), ("ok", 200)),
    "gzip-cut-chunks": (("failed", 0), ("ok", 200)),
    "deflate-cut": (("failed", 0), ("ok", 200)),
    "gzip-part": (("failed", 0), ("failed", 0)),
}

#: Limits, in seconds, that no answer here comes near to.
AMPLE = (20, 20)


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as running:
        yield running


@pytest.fixture(scope="module", params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(driver: str) -> Iterator[SocketClient | LoopDriven]:
    with driven(driver, ["X-Osbench-Run: r1"]) as made:
        yield made


def ours(
    client: SocketClient | LoopDriven, method: str, url: str, **options: Any
) -> tuple[str, int, bytes]:
    """Outcome, status and body with our client."""
    try:
        answer = client.request(method, url, ["X-Osbench-Iteration: 7"], options)
        assert answer is not None
        return "ok", answer.status, answer.content()
    except TimeoutError:
        return "timed out", 0, b""
    except ConnectionError:
        return "failed", 0, b""


def theirs(method: str, url: str, **options: Any) -> tuple[str, int, bytes]:
    """Outcome, status and body with requests."""
    try:
        answer = requests.request(method, url, **options)
        return "ok", answer.status_code, answer.content
    except requests.Timeout:
        return "timed out", 0, b""
    except requests.RequestException:
        return "failed", 0, b""


#: Requests knows zstd by other libraries than we do, and not everywhere.
#: A POST is not sent twice, so that it may fail where the server closes without saying so.
SAME = sorted({*ANSWERS, "reset", "hang-up"} - {*DIFFERENT, "zstd", "zstd-cut"})


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name in SAME
        for method in ("GET", "HEAD", "POST")
        if (name, method) != ("hang-up", "POST")
    ]
    + [("drip", "GET")],
)
def test_the_outcome_is_that_of_requests(server, client, name, method):
    url = f"{server.url}/{name}"
    expected = theirs(method, url, timeout=AMPLE)

    assert ours(client, method, url, timeout=AMPLE) == expected
    assert ours(client, method, url, timeout=20) == expected
    # nothing of it is left for the next request
    assert ours(client, "GET", f"{server.url}/plain") == ("ok", 200, b"fine")


@pytest.mark.parametrize(("name", "outcomes"), DIFFERENT.items(), ids=DIFFERENT.keys())
def test_the_outcome_differs_where_we_want_it_to(server, client, name, outcomes):
    url = f"{server.url}/{name}"
    first, second = outcomes

    assert ours(client, "GET", url, timeout=AMPLE)[:2] == first
    assert theirs("GET", url, timeout=AMPLE)[:2] == second
    assert ours(client, "GET", f"{server.url}/plain") == ("ok", 200, b"fine")


def test_heads_without_end_are_refused_by_both(server, client):
    url = f"{server.url}/endless-head"

    assert ours(client, "GET", url) == theirs("GET", url) == ("failed", 0, b"")


def test_redirects_are_followed_to_the_same_end(server, client):
    for count in (0, 1, 30, 31, 1000):
        url = f"{server.url}/down/{count}"

        assert ours(client, "GET", url) == theirs("GET", url)
        assert ours(client, "GET", url)[0] == ("ok" if count <= 30 else "failed")


@pytest.mark.parametrize("timeout", [0.2, (20, 0.2)])
def test_silence_is_a_timeout_for_both(server, client, timeout):
    url = f"{server.url}/silent"

    assert ours(client, "GET", url, timeout=timeout) == ("timed out", 0, b"")
    assert theirs("GET", url, timeout=timeout) == ("timed out", 0, b"")
    assert ours(client, "GET", f"{server.url}/plain") == ("ok", 200, b"fine")


def test_a_number_bounds_the_whole_request_and_a_pair_each_wait(server, client):
    url = f"{server.url}/endless-drip"

    assert ours(client, "GET", url, timeout=0.5) == ("timed out", 0, b"")
    # with all that it is redirected to: 30 times would take 3 s
    assert ours(client, "GET", f"{server.url}/slowly-down/", timeout=0.5) == ("timed out", 0, b"")
    assert ours(client, "GET", f"{server.url}/drip", timeout=(20, 20)) == (
        "ok",
        200,
        b"abc0123456789",
    )


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_connection_that_the_server_left_is_replaced_once(server, client, method, caplog):
    caplog.set_level(logging.INFO, "osbench.worker.http")
    url = f"{server.url}/leave"
    ours(client, method, url)
    before = server.connections

    # the server closes when it has the request, instead of an answer
    assert ours(client, method, url) == ("ok", 200, b"fine")
    assert (client.retried, server.connections - before) == (1, 1)
    # over a new connection the same is a failure
    assert ours(client, method, f"{server.url}/nothing") == ("failed", 0, b"")
    assert client.retried == 1 + 1
    assert [message.partition(",")[0] for message in caplog.messages] == ["requests sent again"]


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_the_server_may_have_done_is_not_asked_for_twice(server, client, method):
    url = f"{server.url}/leave"
    ours(client, method, url, data=b"one lamp")
    before = server.connections

    with pytest.raises(ConnectionError, match=f"a {method} is not sent twice"):
        client.request(method, url, [], {"data": b"one lamp"})
    assert (client.retried, server.connections - before) == (0, 0)


@pytest.mark.parametrize("body", [b"one lamp", b""])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_libcurl_sends_none_of_them_twice_either(server, method, body):
    curl, url, options = CurlClient([]), f"{server.url}/leave", {"data": body}
    assert curl.status("GET", url, [], {}) == 200
    before = server.connections

    if body:
        with pytest.raises(ConnectionError, match=f"a {method} is not sent twice"):
            curl.status(method, url, [], options)
    else:
        assert curl.status(method, url, [], options) == 200
    assert server.connections - before == (0 if body else 1)


def test_a_late_second_answer_is_not_taken_for_that_of_the_next_request(server, client):
    server.second.clear()
    ours(client, "GET", f"{server.url}/late-second")
    server.second.wait(PATIENCE_S)

    assert ours(client, "GET", f"{server.url}/plain") == ("ok", 200, b"fine")
    assert client.retried == 0


def test_a_body_is_sent_whole_to_a_server_that_reads_slowly(server, client):
    body = bytes(range(256)) * 20_000

    got = ours(client, "PUT", f"{server.url}/slow-reader", data=body, timeout=60)

    assert got == ("ok", 200, b"%d" % len(body))


def test_what_is_coded_with_zstd_is_decoded(server, client):
    assert ours(client, "GET", f"{server.url}/zstd") == ("ok", 200, BODY)


def test_phases_say_what_a_request_took(server, client):
    first, second = (client.request("GET", f"{server.url}/plain", [], {}) for _ in range(2))

    phases = first.phases
    assert phases.begun_ns <= phases.looked_up_ns <= phases.connected_ns <= phases.first_byte_ns
    assert phases.connect_ns > 0
    assert phases.tls_ns == 0
    taken_ns = phases.lookup_ns + phases.connect_ns + phases.wait_ns + phases.rest_ns
    assert taken_ns == phases.ended_ns - phases.begun_ns
    assert phases.received_bytes == len(FINE)
    again = second.phases
    assert again.connected_ns == again.connect_ns == again.lookup_ns == 0
    assert again.wait_ns > 0
    assert again.sent_bytes == phases.sent_bytes > 50
