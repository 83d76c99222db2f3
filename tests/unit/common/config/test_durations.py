"""Durations as people write them."""

from __future__ import annotations

import pytest

from osbench.common.config.durations import seconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("30", 30),
        ("0", 0),
        ("0.5", 0.5),
        ("30s", 30),
        (" 30s ", 30),
        ("30 s", 30),
        ("1h 30 m", 5400),
        ("5m", 300),
        ("500ms", 0.5),
        ("100ms", 0.1),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
        ("1m0.5s", 60.5),
    ],
)
def test_texts_are_read_as_seconds(text: str, wanted: float) -> None:
    found = seconds(text)

    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "5 m 3", "5min", "5M", "1e3", "nan", "inf", "5m30", "9" * 25, "٣s"]
)
def test_other_texts_are_refused_with_what_is_wanted(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as 30s, 5m or 1h30m"):
        seconds(text)
