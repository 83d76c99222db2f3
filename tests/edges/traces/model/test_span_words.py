"""A span is called by service, name and detail, and the name is said once."""

from __future__ import annotations

import pytest

from osbench.edges.traces.model.spans import detail_after, joined_words


@pytest.mark.parametrize(
    ("name", "detail", "said"),
    [
        ("SELECT", "SELECT * FROM items", "shop SELECT * FROM items"),
        ("select", "SELECT 1", "shop select 1"),
        ("GET", "GET", "shop GET"),
        ("db", "SELECT 1", "shop db SELECT 1"),
        ("SELECT", "SELECTED 1", "shop SELECT SELECTED 1"),
        ("", "SELECT 1", "shop SELECT 1"),
        ("wsgi", "", "shop wsgi"),
    ],
)
def test_a_name_that_begins_the_detail_is_said_once(name: str, detail: str, said: str) -> None:
    assert joined_words("shop", name, detail) == said


def test_what_is_left_of_a_detail_may_be_nothing() -> None:
    assert detail_after("GET", "GET") == ""
