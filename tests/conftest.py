"""Options and fixtures of all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

GOLDEN = Path(__file__).parent / "golden"

# machines of very different speed run these: a slow example is no failure
hypothesis.settings.register_profile("osbench", deadline=None)
hypothesis.settings.load_profile("osbench")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden` and `--lab`."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the code prints now to tests/golden instead of comparing with it",
    )
    parser.addoption("--lab", metavar="DIR", help="use the lab that runs in this folder")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of a name, or update the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
