"""Where processes that tests start import from: the same checkout as the tests themselves."""

from __future__ import annotations

import os
from pathlib import Path

#: The folder of helpers, servers and benches.
TESTS = Path(__file__).resolve().parents[1]
#: The folder of the package.
SOURCE = TESTS.parent / "src"


def import_path(*folders: Path) -> dict[str, str]:
    """The variable PYTHONPATH: `folders`, then `SOURCE`, then what the variable names already."""
    kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*folders, SOURCE, *(Path(one).resolve() for one in kept if one)]
    return {"PYTHONPATH": os.pathsep.join(map(str, paths))}
