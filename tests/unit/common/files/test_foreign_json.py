"""JSON of others: numbers that calculations can take, and no more values than wanted."""

from __future__ import annotations

import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.files.foreign_json import TooManyValuesError, read_json, read_json_sequence

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # strings with marks are counted as if they had values
    | st.text(st.characters(exclude_characters=",[{")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_python_writes_comes_back(value: object) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "number",
    ["1" + "0" * 400, "-1" + "0" * 400, "9" * 309, "1" * 5000, "1e400", "-1e400", "1" * 310 + ".5"],
)
def test_a_number_beyond_floats_is_refused_wherever_it_stands(number: str) -> None:
    for text in (number, f"[{number}]", f'{{"a": [1, {{"b": {number}}}]}}'):
        with pytest.raises(ValueError, match="number"):
            read_json(text)


@pytest.mark.parametrize("number", [10**308, -(10**308), int(sys.float_info.max), 2**64, 1.7e308])
def test_a_number_that_a_float_can_hold_is_read(number: float) -> None:
    found = read_json(json.dumps(number))

    assert found == number
    assert math.isfinite(float(found))


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "", "{", "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_json(text)


def _count(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count, inner))


@given(VALUES)
def test_no_more_values_are_made_than_wanted(value: object) -> None:
    text, count = json.dumps(value), _count(value)

    assert read_json(text, 2 * count) == value
    if count > 1:
        with pytest.raises(TooManyValuesError):
            # each but the first follows a comma or a bracket
            read_json(text.encode(), (count - 1) // 2)


def test_texts_one_after_another_are_read_in_order_and_counted_together() -> None:
    assert list(read_json_sequence(' {"a": 1}\n[2] 3', 10)) == [{"a": 1}, [2], 3]
    with pytest.raises(TooManyValuesError):
        list(read_json_sequence("[1] [2] [3]", 2))
    with pytest.raises(ValueError, match="deep"):
        list(read_json_sequence("[" * 100_000, 200_000))
