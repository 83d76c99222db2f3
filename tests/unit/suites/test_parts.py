"""The suites of tests: each test of `make test-all` is in `make test` or in `make test-rest`."""

from __future__ import annotations

import pytest

from suites.parts import LEFT_OUT, REPOSITORY, parts


def test_there_is_a_suite_for_each_text_on_what_it_leaves_out():
    for name in LEFT_OUT:
        assert parts(name)
    with pytest.raises(ValueError, match="there are test, rest, all, python"):
        parts("none")


def test_folders_that_are_named_exist():
    named = {one for name in LEFT_OUT for part in parts(name) for one in part.selection}

    assert not [
        one for one in named if one.startswith("tests/") and not (REPOSITORY / one).exists()
    ]


def test_dear_tests_of_the_world_are_in_the_rest_alone():
    chosen = {
        name: [part for part in parts(name) if "tests/world" in part.selection] for name in LEFT_OUT
    }

    assert ["not dear" in " ".join(part.selection) for part in chosen["test"]] == [True]
    assert [part.selection[-1] for part in chosen["rest"]] == ["dear and not timing"]
    assert [part.selection for part in chosen["all"]] == [("tests/world",)]
