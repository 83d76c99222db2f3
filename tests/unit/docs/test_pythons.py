"""The supported Pythons are the same wherever they are named."""

from __future__ import annotations

import re

import pytest

from helpers.readme import text


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("CONTRIBUTING.md", r"^osbench runs on Python (.*?)\. "),
        (".ci/run", r"^# Supported: (.*?)\. "),
    ],
)
def test_classifiers_say_what_ci_runs_on(file: str, place: str) -> None:
    classified = re.findall(r"Python :: (3\.\d+)$", text("setup.cfg"), re.M)
    (named,) = re.findall(place, text(file), re.M)

    assert re.findall(r"3\.\d+", named) == classified
    assert len(classified) == 3
