"""Foreign text in Markdown is shown as it is, without formatting."""

from __future__ import annotations

import pytest

from osbench.coordinator.report.markdown_text import markdown_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p95 <= 1 ms", "p95 &#60;= 1 ms"),
        ("<b>@all</b>", "&#60;b&#62;&#64;all&#60;/b&#62;"),
        ("# 1 | `x` [y]", "\\# 1 \\| \\`x\\` \\[y\\]"),
    ],
)
def test_signs_of_markdown_are_shown(text: str, shown: str) -> None:
    assert markdown_text(text) == shown
