"""Examples of the page for maintainers are lines of the code that it names."""

from __future__ import annotations

import re

from helpers.readme import text


def test_the_example_of_a_number_is_that_of_the_code() -> None:
    section = text("docs/maintaining.md").partition("\n## Numbers of a workload\n")[2]
    section = section.partition("\n## ")[0]
    files = re.findall(r"`(coordinator/[\w/]+\.py)`", section)
    code = "\n".join(map(text, files))
    lines = [
        line
        for block in re.findall(r"```python\n(.*?)```", section, re.S)
        for line in block.splitlines()
    ]

    assert len(lines) > 5
    assert [line for line in lines if line.strip() not in ("", "...") and line not in code] == []
