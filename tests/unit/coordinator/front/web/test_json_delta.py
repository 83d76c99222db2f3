"""Changes of documents: applied, they give the document; charts that grow send their tails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.front.web.json_delta import apply_change, change

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "<b>"]),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(DOCUMENTS, DOCUMENTS)
def test_what_was_changed_is_what_was_meant(before: Any, after: Any) -> None:
    how = json.loads(json.dumps(change(before, after)))

    assert apply_change(before, how) == after


@given(DOCUMENTS)
def test_what_stays_is_no_change(document: Any) -> None:
    assert change(document, json.loads(json.dumps(document))) is None


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ([1, 2, 3], [1, 2, 3, 4], {"+": [3, [4]]}),
        ([1, 2, 3], [1, 2, 5, 6], {"+": [2, [5, 6]]}),
        ([1, 2, 3], [1], {"+": [1, []]}),
        ({"a": [1], "b": 1}, {"a": [1, 2], "b": 1}, {"~": {"a": {"+": [1, [2]]}}}),
        ([{"x": [1]}, {"x": [2]}], [{"x": [1]}, {"x": [2, 3]}],
         {"~": {"1": {"~": {"x": {"+": [1, [3]]}}}}}),
        ({"a": 1}, {"b": 1}, {"=": {"b": 1}}),
    ],
)  # fmt: skip
def test_only_what_is_new_is_sent(before: Any, after: Any, how: Any) -> None:
    assert change(before, after) == how


def test_of_many_lines_those_that_changed_are_sent() -> None:
    before = [f"<td>line {number}</td>" for number in range(100)]
    after = [*before]
    after[3] = "<td>3</td>"
    after[90] = "<td>90</td>"

    how = change(before, after)

    assert how == {"~": {"3": {"=": "<td>3</td>"}, "90": {"=": "<td>90</td>"}}}
