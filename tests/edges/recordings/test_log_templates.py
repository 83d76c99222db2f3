"""Templates of requests: no ids, no secrets, no names of people where there are many."""

from __future__ import annotations

import pytest

from osbench.edges.recordings import log_templates
from osbench.edges.recordings.log_templates import (
    OTHER,
    RequestTemplate,
    TemplateTable,
    merged_templates,
    template_of,
)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("GET /", "GET /"),
        ("GET /items/17/parts/", "GET /items/[id]/parts/"),
        ("GET /api/v2/users/ann@example.com", "GET /api/v2/users/[id]"),
        ("GET /users/ann%40example.com/x", "GET /users/[id]/x"),
        ("GET /users/J%C3%B6rg", "GET /users/[id]"),
        ("GET /users/J\u00f6rg", "GET /users/[id]"),
        ("GET /a;lang=de/b", "GET /[id]/b"),
        ("GET /reset/token/abcdefgh", "GET /reset/token/[id]"),
        ("GET /x/eyJhbGciOiJIUzI.eyJzdWIiOiIxMjM.SflKxwRJSMeKKF", "GET /x/[id]"),
        ("GET /x/aVeryLongOpaqueTextWithoutAnyDigitInIt", "GET /x/[id]"),
        ("GET /static/main.3f2a1b.js", "GET /static/main.3f2a1b.js"),
        ("GET /photos/4711.jpg", "GET /photos/[id]"),
        ("GET https://shop.example:8443/items/17", "GET /items/[id]"),
    ],
)
def test_ids_and_values_are_not_in_a_template(request_: str, name: str) -> None:
    assert template_of(request_).name == name


def test_many_parts_in_one_place_are_ids() -> None:
    users = [template_of(f"GET /users/{chr(97 + k // 26)}{chr(97 + k % 26)}/x") for k in range(51)]
    others = [template_of(f"GET /{word}/x") for word in ("items", "orders")]
    scripts = [template_of(f"GET /static/lib{k}.js") for k in range(60)]

    found = merged_templates([*users, *others, *scripts])

    assert [one.name for one in found[:53]] == [
        *["GET /users/[id]/x"] * 51, "GET /items/x", "GET /orders/x"
    ]  # fmt: skip
    assert found[53:] == scripts


def test_few_parts_in_one_place_stay() -> None:
    few = [template_of(f"GET /users/{chr(97 + k)}/x") for k in range(26)]

    assert merged_templates(few) == few


def test_what_a_table_has_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_templates, "_MOST_REQUESTS", 4)
    monkeypatch.setattr(log_templates, "_MOST_TEMPLATES", 3)
    table = TemplateTable()

    numbers = [table[b"GET /%s" % bytes([97 + k])] for k in range(10)]
    again = [table[b"GET /%s" % bytes([97 + k])] for k in range(10)]

    assert numbers == again == [1, 2, 3, *[OTHER] * 7]
    assert len(table) <= 4
    assert table.templates[1] == RequestTemplate(method="GET", parts=("", "a"))


@pytest.mark.parametrize(
    "part", ["17", "v2", "v2.1", "a1b", "\u0661", "x", "0", "v2x", "a.1.js", "v2"]
)
def test_requests_that_are_alike_have_the_template_of_their_own(part: str) -> None:
    table = TemplateTable()
    requests = [f"GET /{part}", f"GET /a/{part}/b", f"GET /{part}/", f"GET /{part}/{part}"]

    numbers = [table[one.encode()] for one in requests]

    assert [table.templates[at] for at in numbers] == list(map(template_of, requests))


@pytest.mark.parametrize("part", [b"1" * 400_000 + b".", b"a1" * 200_000, b"/1" * 200_000])
def test_long_requests_take_linear_time_and_are_not_kept(part: bytes) -> None:
    table = TemplateTable()

    number = table[b"GET /" + part]

    assert table.templates[number].method == "GET"
    assert sum(map(len, table)) < 10_000


def test_a_place_with_many_parts_takes_no_more_templates() -> None:
    table = TemplateTable()

    words = [f"{chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(400)]
    numbers = [table[f"GET /users/{word}/x".encode()] for word in words]

    assert len(table.templates) == 53
    assert len(set(merged_templates([table.templates[at] for at in numbers]))) == 1
