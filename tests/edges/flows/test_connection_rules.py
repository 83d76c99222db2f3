"""Connections of both drivers, of libcurl and of `requests` keep the rules of a task."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from helpers.certificates import self_signed
from helpers.driven import DRIVERS, driven
from helpers.recording_server import RecordingServer, Seen, recording_server
from osbench.common.errors import FleetError, TaskError
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile.loading import checked_task
from osbench.edges.flows import ending_connection
from osbench.edges.flows.connection_rules import TaskConnectionRules
from osbench.edges.flows.ending_connection import EndedConnections, EndingConnection, EndRule
from osbench.edges.flows.source_addresses import (
    MOST,
    SourceAddresses,
    SourcedConnect,
    addresses_of,
)
from osbench.worker.http.exchange_steps import Connect
from osbench.worker.http.http_clients import HttpClients
from servers.hostile_http import hostile_server

#: Requests of a test.
REQUESTS = 24


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordingServer]:
    certificate = self_signed(tmp_path) if request.param == "https" else None
    with recording_server(certificate) as running:
        yield running


@pytest.fixture
def plain_server() -> Iterator[RecordingServer]:
    with recording_server() as running:
        yield running


def made(
    driver: str, server: RecordingServer, wish: dict[str, Any], method: str = "GET"
) -> tuple[list[Seen], TaskConnectionRules]:
    rules = TaskConnectionRules(wish)
    with driven(driver, opener=rules.opener) as client:
        for _ in range(REQUESTS):
            answer = client.request(method, f"{server.url}/a", [], {"verify": False, "data": "x"})
            assert answer is not None
            assert answer.status == 200
    return server.taken(), rules


def sizes(seen: list[Seen]) -> list[int]:
    """How many requests each connection had, in order."""
    return list(Counter(one.connection for one in seen).values())


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_ends_after_its_number_of_requests(driver, server, method) -> None:
    seen, rules = made(driver, server, {"connections": {"max_requests": 8}}, method)

    assert len(seen) == REQUESTS
    *ended, last = sizes(seen)
    # each at its own number, from three quarters of the limit
    assert all(6 <= size <= 8 for size in ended)
    assert 1 <= last <= 8
    assert rules.ended.counts["max_requests"] in (len(ended), len(ended) + 1)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_limit_of_one_request_opens_a_connection_for_each(driver, plain_server) -> None:
    seen, rules = made(driver, plain_server, {"connections": {"max_requests": 1}})

    assert sizes(seen) == [1] * REQUESTS
    assert rules.ended.counts == {"max_requests": REQUESTS}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("age_s", "connections"), [(1e-9, REQUESTS), (1e6, 1)])
def test_a_connection_ends_at_its_age(driver, plain_server, age_s, connections) -> None:
    seen, rules = made(driver, plain_server, {"connections": {"max_age": age_s}})

    assert len(sizes(seen)) == connections
    assert rules.ended.counts["max_age"] == (REQUESTS if connections > 1 else 0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_no_connection_has_more_than_its_requests_if_many_are_made_at_once(
    driver, plain_server
) -> None:
    rules = TaskConnectionRules({"connections": {"max_requests": 5, "max_age": 1e6}})

    with driven(driver, opener=rules.opener) as client, ThreadPoolExecutor(8) as pool:
        url = f"{plain_server.url}/a"
        done = pool.map(lambda _: client.request("GET", url, [], {}), range(120))
        assert {answer.status for answer in done if answer is not None} == {200}

    found = sizes(plain_server.taken())
    assert sum(found) == 120
    assert max(found) <= 5
    # those of 4 may have drawn 5
    ended = rules.ended.counts["max_requests"]
    assert found.count(5) <= ended <= found.count(4) + found.count(5)


class Idle:
    """A connection within that could go on for ever."""

    reusable = True
    peer = "10.0.0.1:80"

    def spoilt(self, now_ns: int, *, certainly: bool = False) -> bool:
        return False


def test_an_idle_connection_is_not_taken_at_its_age(monkeypatch) -> None:
    monkeypatch.setattr(ending_connection, "monotonic_ns", lambda: 5_000_000_000)
    ended = EndedConnections()
    found = EndingConnection(Idle(), EndRule(max_age_s=8), ended)

    # 75 % of 8 s to 8 s after it was opened
    assert found.spoilt(10_999_999_999) is False
    assert found.spoilt(13_000_000_000) is True
    assert (found.reusable, found.peer, ended.counts) == (True, "10.0.0.1:80", {"max_age": 1})


def test_limits_are_drawn_between_three_quarters_and_the_whole() -> None:
    rule = EndRule(max_requests=100, max_age_s=20)

    drawn = {rule.drawn_requests() for _ in range(3000)}
    ages = [rule.drawn_age_s() for _ in range(100)]

    assert (min(drawn), max(drawn)) == (75, 100)
    assert 15 <= min(ages) < max(ages) <= 20
    assert {EndRule(max_requests=2).drawn_requests() for _ in range(99)} == {2}


# source addresses


@pytest.mark.parametrize("driver", DRIVERS)
def test_connections_take_the_source_addresses_in_turn(driver, server) -> None:
    wish = {"connections": {"max_requests": 1}, "source": ["127.0.0.2", "127.0.0.8/30"]}

    seen, _ = made(driver, server, wish)

    counts = Counter(one.source for one in seen)
    assert set(counts) == {"127.0.0.2", "127.0.0.9", "127.0.0.10"}
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_target_of_another_family_fails_and_says_which(driver) -> None:
    rules = TaskConnectionRules({"source": "127.0.0.2"})

    with (
        driven(driver, opener=rules.opener) as client,
        pytest.raises(ConnectionError, match=r"has no IPv6 address of .*: add one"),
    ):
        client.request("GET", "http://[::1]:9/", [], {})


def test_a_host_without_any_of_the_addresses_is_refused_by_name() -> None:
    with pytest.raises(FleetError) as raised:
        SourceAddresses(["192.0.2.1", "2001:db8::5"])

    assert socket.gethostname() in str(raised.value)
    assert "[192.0.2.1, 2001:db8::5]" in str(raised.value)


def test_addresses_of_other_hosts_are_left_out() -> None:
    sources = SourceAddresses(["192.0.2.1", "127.0.0.3"])

    assert {sources.next_of_any() for _ in range(4)} == {"127.0.0.3"}


def test_a_bound_socket_takes_no_port_before_it_connects() -> None:
    step = SourcedConnect((socket.AF_INET, ("127.0.0.1", 9)), None, False)
    step.source = "127.0.0.2"

    with step.socket() as sock:
        assert sock.getsockname() == ("127.0.0.2", 0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_address_without_a_route_to_the_target_is_named(driver) -> None:
    rules = TaskConnectionRules({"source": "127.0.0.2"})

    with (
        driven(driver, opener=rules.opener) as client,
        pytest.raises(ConnectionError, match=r"from the source address 127\.0\.0\.2: name an"),
    ):
        # of no loopback
        client.request("GET", "http://192.0.2.1:9/", [], {"timeout": 20})


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_large_body_goes_over_connections_that_end(driver, server) -> None:
    rules = TaskConnectionRules({"connections": {"max_requests": 2}})
    body = b"x" * 300_000

    with driven(driver, opener=rules.opener) as client:
        for _ in range(5):
            answer = client.request("POST", f"{server.url}/a", [], {"verify": False, "data": body})
            assert answer is not None

    seen = server.taken()
    assert [len(one.body) for one in seen] == [300_000] * 5
    assert sizes(seen) == [2, 2, 1]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_request_is_sent_again_over_a_connection_with_the_rules(driver) -> None:
    rules = TaskConnectionRules({"connections": {"max_requests": 8}, "source": "127.0.0.9"})

    with hostile_server() as server, driven(driver, opener=rules.opener) as client:
        for _ in range(3):
            answer = client.request("GET", f"{server.url}/leave", [], {})
            assert answer is not None
            assert answer.status == 200

        assert client.retried > 0
    # none of them has ended by a rule
    assert not rules.ended.counts


def test_ports_that_are_used_up_are_named_with_a_remedy() -> None:
    def opening() -> Any:
        yield Connect((socket.AF_INET, ("127.0.0.1", 9)), None, False)

    steps = SourceAddresses("127.0.0.2").bound(opening())
    assert isinstance(next(steps), SourcedConnect)
    with pytest.raises(OSError, match=r"requested address: all ports of 127\.0\.0\.2 "):
        steps.throw(OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"))


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["10.0.0.5"], ["10.0.0.5"]),
        (["10.0.0.4/30", "10.0.0.5"], ["10.0.0.5", "10.0.0.6"]),
        (["2001:db8::/126"], ["2001:db8::1", "2001:db8::2", "2001:db8::3"]),
        (["10.0.0.0/31"], ["10.0.0.0", "10.0.0.1"]),
        ([" ::1 "], ["::1"]),
    ],
)
def test_addresses_and_networks_are_read(texts, found) -> None:
    assert [str(one) for one in addresses_of(texts)] == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eth0", "neither an address"),
        ("10.0.0.5/24", "write 10.0.0.0/24 for the network"),
        ("10.0.0.0/8", f"more than {MOST:,} addresses"),
        ("0.0.0.0", "is not the address of a host"),
        ("224.0.0.1", "is not the address of a host"),
        ("", "neither an address"),
    ],
)
def test_what_is_no_address_is_refused(text, said) -> None:
    with pytest.raises(ValueError, match=said):
        addresses_of([text])


# other clients, through a proxy


@pytest.mark.parametrize("options", [{}, {"auth": ["me", "pw"]}], ids=["libcurl", "requests"])
@pytest.mark.parametrize("in_loop", [True, False])
def test_connections_to_a_proxy_keep_the_rules(plain_server, monkeypatch, options, in_loop) -> None:
    monkeypatch.setenv("http_proxy", plain_server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    wish = {"connections": {"max_requests": 4}, "source": ["127.0.0.7"]}
    clients = HttpClients([], wish=wish)

    async def one_after_another() -> None:
        for _ in range(REQUESTS):
            recorder = Recorder(Names())
            assert await clients.status("GET", "http://a.invalid/", [], options, recorder) == 200

    if in_loop:
        asyncio.run(one_after_another())
    else:
        for _ in range(REQUESTS):
            recorder = Recorder(Names())
            clients.blocking_status("GET", "http://a.invalid/", [], options, recorder)

    seen = plain_server.taken()
    assert len(seen) == REQUESTS
    assert {one.source for one in seen} == {"127.0.0.7"}
    found = sizes(seen)
    assert max(found) <= 4
    if not in_loop:
        # one thread: each connection but the last has its number
        assert all(size >= 3 for size in found[:-1])


@pytest.mark.parametrize("options", [{}, {"auth": ["me", "pw"]}], ids=["libcurl", "requests"])
def test_each_request_to_a_proxy_opens_a_connection_if_one_is_the_limit(
    plain_server, monkeypatch, options
) -> None:
    monkeypatch.setenv("http_proxy", plain_server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    clients = HttpClients([], wish={"connections": {"max_requests": 1}})

    for _ in range(5):
        clients.blocking_status("POST", "http://a.invalid/", [], options, Recorder(Names()))

    assert sizes(plain_server.taken()) == [1] * 5


def test_libcurl_keeps_the_rule_if_a_thread_has_several_connections(
    plain_server, monkeypatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    clients = HttpClients([], wish={"connections": {"max_requests": 4}})

    with recording_server() as other:
        for _ in range(REQUESTS):
            for proxy in (plain_server, other):
                monkeypatch.setenv("http_proxy", proxy.url)
                clients.blocking_status("GET", "http://a.invalid/", [], {}, Recorder(Names()))

        assert max(sizes(other.taken())) <= 4
    assert max(sizes(plain_server.taken())) <= 4


# the task


def problems(http: dict[str, Any]) -> list[str]:
    subtask = {"title": "s", "scenario": {"Dummy.dummy": {}}, "http": http}
    document = {"version": 2, "title": "t", "subtasks": [subtask]}
    with pytest.raises(TaskError) as raised:
        checked_task(document, "task", Plugins([]))
    return [f"{one.place}: {one.message}" for one in raised.value.problems]


@pytest.mark.parametrize(
    ("http", "said"),
    [
        (
            {"connections": {"max_request": 5}},
            ".http.connections.max_request: unknown key (did you",
        ),
        ({"connections": {}}, ".http.connections: must name at least 1"),
        ({"connections": {"max_requests": 0}}, ".max_requests: must be at least 1, got 0"),
        ({"connections": {"max_age": "soon"}}, ".max_age: must be "),
        ({"connections": 5}, ".http.connections: must be an object, got 5; an example: "),
        ({"sources": ["10.0.0.5"]}, ".http.sources: unknown key (did you mean source?)"),
        ({"source": []}, ".http.source: must hold at least 1"),
        ({"source": [5]}, ".http.source[0]: must be a string, got 5"),
        ({"source": "10.0.0.300"}, ".http.source: '10.0.0.300' is neither an address"),
        ({"source": ["10.0.0.5/24"]}, ".http.source: '10.0.0.5/24' has bits after its prefix"),
        (
            {"base": "http://[2001:db8::1]:80", "source": ["10.0.0.5"]},
            ".http.source: base is the IPv6 address 2001:db8::1, and no source address is of that",
        ),
    ],
)
def test_mistakes_in_the_task_have_a_place_and_a_remedy(http, said) -> None:
    (found,) = problems(http)

    assert said in found


def test_ages_are_durations() -> None:
    subtask = {
        "title": "s",
        "scenario": {"Dummy.dummy": {}},
        "http": {"connections": {"max_age": "2m"}, "source": "10.0.0.5"},
    }
    document = {"version": 2, "title": "t", "subtasks": [subtask]}

    (workload,) = checked_task(document, "task", Plugins([])).workloads

    assert EndRule.of(workload.http["connections"]) == EndRule(max_age_s=120)
