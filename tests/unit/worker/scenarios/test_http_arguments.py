"""Arguments of HTTP requests are checked before any request is made."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.worker.scenarios.http_arguments import request_problems
from osbench.worker.scenarios.http_requests import HttpRequests

URL = "http://shop:8080/items"


@pytest.mark.parametrize(
    "args",
    [
        {"url": URL, "method": "GET", "status_code": 200},
        {"url": "https://[::1]/{run}/{iteration}", "method": "PROPFIND"},
        {"url": "http://shop:80{iteration}/", "headers": {"X-Run": "{run}", "Accept": None}},
        {"headers": {}, "json": [1], "data": "{me}", "params": {"q": 1}, "verify": False},
        {"timeout": [1, 2.5], "auth": ["ann", "x"], "cert": "/etc/x.pem", "json": None},
        {"url": "HTTP://SHOP/?q=a%20b", "data": {"a": 1}, "allow_redirects": True, "timeout": 3},
    ],
)
def test_what_a_request_takes(args: dict[str, Any]) -> None:
    assert list(request_problems(args)) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"heders": {}}, "heders is not an argument of a request; did you mean headers?"),
        (
            {"weight": 3},
            "weight is not an argument of a request; it takes url, method, status_code,",
        ),
        ({"url": "htp://shop"}, "url must begin with http:// or https:// and a host, got 'htp://"),
        ({"url": "shop/items"}, "url must begin with http:// or https:// and a host"),
        ({"url": "http:///items"}, "url must begin with http:// or https:// and a host"),
        ({"url": "http://shop:port/"}, "url is not a URL: its host or port cannot be read"),
        ({"url": URL + "/{user}"}, "url holds {user}, which is not filled in: only {iteration}"),
        ({"url": 5}, "url must be a text, got a number"),
        ({"method": "GET it"}, "method must be a method such as GET"),
        ({"status_code": "200"}, "status_code must be an integer such as 200, got a text"),
        ({"status_code": True}, "status_code must be an integer such as 200"),
        ({"headers": ["a"]}, "headers must be an object of texts, got a list"),
        ({"headers": {"X-N": 5}}, "headers.X-N must be a text, got a number: put it in quotes"),
        ({"headers": {"a b": "c"}}, "headers: 'a b' is not a header name"),
        ({"timeout": True}, "timeout must be seconds, or a list of two, got true or false"),
        ({"allow_redirects": "no"}, "allow_redirects must be true or false, got a text"),
    ],
)
def test_what_it_does_not_take(args: dict[str, Any], said: str) -> None:
    (problem,) = request_problems(args)

    assert problem.startswith(said)


def test_no_secret_of_an_argument_is_told() -> None:
    found = list(
        request_problems(
            {
                "url": "htp://ann:hunter2@shop/",
                "auth": "ann:hunter2",
                "headers": {"Authorization": 4242},
            }
        )
    )

    assert len(found) == 3
    assert "hunter2" not in str(found)
    assert "4242" not in str(found)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"url": URL, "method": "GET", "heders": {}}, "requests[1].heders is not an argument"),
        ({"method": "GET"}, "url of requests[1] is missing"),
        ("GET /", "requests[1] must be an object with a url"),
    ],
)
def test_random_requests_are_checked_one_by_one(request_: Any, said: str) -> None:
    args = {"requests": [{"url": URL, "method": "GET"}, request_], "status_code": 200}

    (problem,) = HttpRequests.check_arguments("check_random_request", args)

    assert problem.startswith(said)


def test_no_request_to_pick_is_a_mistake() -> None:
    assert HttpRequests.check_arguments("check_random_request", {"requests": []}) == [
        "requests is empty"
    ]
    assert HttpRequests.check_arguments("check_random_request", {"status_code": 200}) == []
