"""Addresses of servers: the readers agree on those that are taken; no refusal shows a part."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu.utils.url import url_to_parts
from redis.connection import parse_url

from osbench.common.network.server_address import (
    AMQP,
    HTTP,
    REDIS,
    UNIX,
    parse_server_address,
    server_address_fault,
)
from osbench.common.secrets.masking import mask_text


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("redis://h", "h", None),
        ("redis://h/", "h", None),
        ("rediss://u:p@h.example:6380/3?ssl_ca_certs=/a/b.pem", "h.example", 6380),
        ("redis://:p%40s%2Fs%25@127.0.0.1:1/0", "127.0.0.1", 1),
        ("redis://[::1]:6379/15", "::1", 6379),
        ("redis://[fe80::1%25eth0]:6379", "fe80::1%25eth0", 6379),
        ("unix:///run/redis.sock?db=1", "", None),
        ("unix://:pw@/run/redis.sock", "", None),
        ("redis+socket:///run/redis.sock?virtual_host=2", "", None),
        ("amqp://u:p@h:5672//", "h", 5672),
        ("amqps://h/vhost", "h", None),
        ("amqp://h/a%2Fb", "h", None),
        ("http://prometheus:9090/path/x?tenant=1", "prometheus", 9090),
        ("https://a_b.example.", "a_b.example.", None),
    ],
)
def test_an_address_that_all_read_alike(url: str, host: str, port: int | None) -> None:
    found = parse_server_address(url, (*REDIS, *UNIX, *AMQP, *HTTP))

    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://127.0.0.1:1/3/", "the number of a database"),
        ("redis://127.0.0.1:1/x", "the number of a database"),
        ("redis://:secret@ss#w/o:r?d%25&x@127.0.0.1:1/0", "write special characters"),
        ("redis://:secret/w@127.0.0.1:1/0", "write special characters"),
        ("redis://u:se#cret@127.0.0.1", "write special characters"),
        ("redis://u:se?cret@127.0.0.1", "write special characters"),
        ("redis://u:secret@h@127.0.0.1", "write special characters"),
        ("redis://u:se[cret@127.0.0.1", "a bracket in user or password"),
        ("redis://u:100%secret@127.0.0.1", "as %25"),
        ("redis://u:se cret@127.0.0.1", "a blank"),
        (" redis://127.0.0.1", "a blank"),
        ("redis-http://127.0.0.1", "must begin with one of redis://, rediss://"),
        ("redis://127.0.0.1\t", "a blank"),
        ("redis://127.0.0.1\\secret", "a backslash"),
        ("redis://", "has no host"),
        ("redis://:6379", "has no host"),
        ("redis:///0", "has no host"),
        ("redis://h:", "a port that is not a number"),
        ("redis://h:0", "a port that is not a number"),
        ("redis://h:65536", "a port that is not a number"),
        ("redis://h:secret", "a port that is not a number"),
        ("redis://u:secret:h", "several colons"),
        ("redis://::1:6379", "several colons"),
        ("redis://[::1", "without brackets"),
        ("redis://[h]:1", "without an IPv6 address"),
        ("redis://127.1", "not an IPv4 address"),
        ("redis://0177.0.0.1", "not an IPv4 address"),
        ("redis://0x7f000001", "not an IPv4 address"),
        ("redis://2130706433", "not an IPv4 address"),
        ("redis://h..x", "no host name"),
        ("redis://bücher", "beyond ASCII"),
        ("redis://h?db=1", "use ssl_ca_certs"),
        ("redis://h?ssl_ca_certs=/a&ssl_ca_certs=/b", "twice"),
        ("redis://h#x", "a fragment"),
        ("unix://run/redis.sock", "three slashes"),
        ("unix://", "three slashes"),
        ("amqp://h/a/b", "as %2F"),
        ("http://u:secret@h/x@y", "write special characters"),
        ("ftp://h", "must begin with"),
        ("127.0.0.1:6379", "must begin with"),
        ("", "must begin with"),
    ],
)
def test_an_address_that_some_read_otherwise(url: str, reason: str) -> None:
    schemes = (
        HTTP if url.startswith("http") else AMQP if url.startswith("amqp") else (*REDIS, "unix")
    )

    fault = server_address_fault(url, REDIS if url.strip().startswith("redis:") else schemes)

    assert reason in fault
    assert "secret" not in fault
    # taken for no secret itself where errors of iterations are masked
    assert mask_text(fault) == fault


@given(user=st.text(), password=st.text(), database=st.integers(0, 15))
def test_what_is_taken_is_read_alike_by_the_clients(
    user: str, password: str, database: int
) -> None:
    url = f"redis://{quote(user, safe='')}:{quote(password, safe='')}@host:6380/{database}"

    found = parse_server_address(url, REDIS)

    assert (found.user, found.password) == (user, password)
    for_redis, for_kombu = parse_url(url), url_to_parts(url)
    assert for_redis.get("username", "") == (for_kombu[3] or "") == user
    assert for_redis.get("password", "") == (for_kombu[4] or "") == password
    assert for_redis["host"] == for_kombu[1] == urlsplit(url).hostname == found.host


@given(text=st.text(alphabet=st.sampled_from(":/?#[]@%2Fa1. ")))
def test_any_text_is_taken_as_all_read_it_or_refused(text: str) -> None:
    url = f"redis://{text}"
    if server_address_fault(url, REDIS):
        return

    found = parse_server_address(url, REDIS)

    assert parse_url(url)["host"] == url_to_parts(url)[1] == found.host.lower()
    assert parse_url(url).get("port") == url_to_parts(url)[2] == found.port
