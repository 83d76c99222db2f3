"""The layers of mutants are the suites of tests."""

from __future__ import annotations

import pytest

from mutants.layers import LAYERS
from suites.parts import parts


@pytest.mark.parametrize(("layer", "suite"), [("test", "test"), ("test-all", "all")])
def test_a_layer_has_the_tests_of_the_command_of_its_name(layer: str, suite: str) -> None:
    assert [sorted((*part.paths, *part.options)) for part in LAYERS[layer]] == [
        sorted((*part.selection, *part.options)) for part in parts(suite)
    ]
