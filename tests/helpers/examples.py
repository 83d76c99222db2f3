"""Numbers of examples of property tests, by the option `--examples`."""

from __future__ import annotations

import hypothesis

#: Examples of a property test that gives no number, by the value of `--examples`.
PROFILES = {"few": 25, "many": 100}

#: Fewer are no search.
FEWEST = 5


def examples(many: int) -> int:
    """Return the number of examples of a test that tries `many` with `--examples=many`."""
    return max(FEWEST, many * hypothesis.settings.default.max_examples // PROFILES["many"])
