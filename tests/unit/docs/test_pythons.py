"""The supported Pythons are the same wherever they are named."""

from __future__ import annotations

import re

from helpers.readme import text


def classified() -> list[str]:
    """The Pythons of the classifiers, oldest first."""
    return re.findall(r"Python :: (3\.\d+)$", text("setup.cfg"), re.M)


def named(file: str, place: str) -> list[str]:
    """The Pythons at a place in a file."""
    (found,) = re.findall(place, text(file), re.M)
    return re.findall(r"3\.\d+", found)


def test_contributors_read_of_the_pythons_of_the_classifiers() -> None:
    supported = classified()

    assert named("CONTRIBUTING.md", r"^osbench runs on Python (.*?)\. ") == supported
    assert len(supported) == 4


def test_a_release_runs_on_the_pythons_between_the_oldest_and_the_newest() -> None:
    between = classified()[1:-1]

    assert named(".ci/release.py", r"^PYTHONS = \((.*)\)$") == between
    assert named("docs/maintaining.md", r"^   Python (3.*?)\. These must") == between


def test_make_may_choose_each_of_them() -> None:
    candidates = named(".ci/choose-python", r"^for found in (.*); do$")

    assert sorted(candidates) == classified()


def test_the_image_has_the_newest() -> None:
    assert named("deploy/Dockerfile", r"^ARG PYTHON=(.*)$") == classified()[-1:]
