"""The page of differences from Rally's scenarios is what the code of both makes."""

from __future__ import annotations

import importlib.metadata
import runpy

import pytest

from helpers.readme import REPOSITORY
from osbench.common.plugin.signature import signature_of
from osbench.edges.rally import known

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

SCRIPT = runpy.run_path(str(REPOSITORY / "docs" / "rally_differences.py"))


def test_the_page_is_what_the_code_makes():
    version = importlib.metadata.version("rally-openstack")
    if version != known.PUBLISHED:
        pytest.skip(f"the page is of rally-openstack {known.PUBLISHED}, and {version} is installed")
    page = (REPOSITORY / "docs" / "rally-differences.md").read_text(encoding="utf-8")

    assert SCRIPT["page"]() == page, (
        "run python docs/rally_differences.py > docs/rally-differences.md"
    )


def test_arguments_and_defaults_are_compared():
    def theirs(self, size, force=False, name=None):
        pass

    def same(self, size, force=False, name=None, retries=0):
        pass

    def other(self, size, force=True, color="red"):
        pass

    def any_of_them(self, size, **kwargs):
        pass

    rows = SCRIPT["_rows_of_arguments"]
    rally = dict.fromkeys(("A.same", "A.other", "A.any"), signature_of(theirs))

    found = list(rows(rally, {"A.same": same, "A.other": other, "A.any": any_of_them}))

    assert found == [
        "| `A.other` | `name` | `color` | `force`: True, Rally False |",
        "| `A.any` |  | further ones |  |",
    ]
