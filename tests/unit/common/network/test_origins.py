"""Origins of URLs, and which changes of them secrets survive."""

import pytest

from osbench.common.network.origins import origin, origin_changes, secret_headers


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://Cloud.example/v3", "http://cloud.example:80"),
        ("https://u:p@cloud.example", "https://cloud.example:443"),
        ("HTTP://[::1]:5000/", "http://[::1]:5000"),
    ],
)
def test_an_origin_has_a_scheme_a_host_and_a_port(url, found):
    assert origin(url) == found


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("http://a/x", "http://a/y", False),
        ("http://a/x", "http://A:80/y", False),
        # as requests has it: a service that upgrades its users to TLS
        ("http://a/x", "https://a/y", False),
        ("http://a:80/x", "https://a:443/y", False),
        ("https://a/x", "http://a/y", True),
        ("http://a/x", "https://a:8443/y", True),
        ("http://a:8080/x", "https://a:8443/y", True),
        ("http://a/x", "http://a:8080/y", True),
        ("http://a/x", "http://b/y", True),
        ("http://a/x", "http://a.b/y", True),
        ("http://a/x", "http://a@b/y", True),
        ("http://b:80/x", "https://bb:443/y", True),
        ("http://a/x", "http://a:port/y", True),
        ("http://a/x", "http://[a/y", True),
        ("http://a/x", "ftp://a/y", True),
    ],
)
def test_secrets_go_no_further_than_their_origin(old, new, changes):
    assert origin_changes(old, new) is changes


def test_headers_that_are_secrets_are_found_in_any_spelling():
    names = ["AUTHORIZATION", "x_auth_token", "Accept", "X-Key-Name", "Idempotency-Key", "cookie"]

    assert secret_headers(names) == ["AUTHORIZATION", "x_auth_token", "cookie"]
