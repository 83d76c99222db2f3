"""The map of the code is that of the code."""

from __future__ import annotations

import re
import runpy

from helpers.readme import REPOSITORY

MAP = REPOSITORY / "docs" / "pictures" / "code-map.svg"


def test_the_map_is_what_the_script_draws() -> None:
    drawn = runpy.run_path(str(REPOSITORY / "docs" / "code_map.py"))["drawing"]()

    assert MAP.read_text("utf-8") == drawn, (
        "run python docs/code_map.py > docs/pictures/code-map.svg"
    )


def test_the_map_has_every_package() -> None:
    names = set(re.findall(r'text-anchor="middle">([^<]+)<', MAP.read_text("utf-8")))
    groups = [path.name for path in (REPOSITORY / "coordinator").iterdir() if path.is_dir()]
    parts = ["common", "worker", "coordinator", "edges", *(f"coordinator/{one}" for one in groups)]
    folders = {
        folder.name
        for part in parts
        for folder in (REPOSITORY / part).iterdir()
        if (folder / "__init__.py").is_file()
    }

    assert folders <= names
