"""An environment of a service that has the OSProfiler driver of deploy/osprofiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from helpers.readme import REPOSITORY

#: Builds the wheel of the folder that it runs in; pip does no more.
BUILD = "from setuptools import build_meta; build_meta.build_wheel('dist')"


def driver_environment(folder: Path, others: Iterable[Path | str] = ()) -> Path:
    """The interpreter of a new environment with the driver, installed from its wheel.

    All other packages come from `others`, folders of packages; without any from those of the tests.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    others = list(others) or [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in others))
    # links are followed; what was built there before is left
    sources = shutil.copytree(
        REPOSITORY / "deploy" / "osprofiler",
        folder / "sources",
        ignore=shutil.ignore_patterns("build", "dist", "*.egg-info"),
    )
    subprocess.run([sys.executable, "-c", BUILD], cwd=sources, check=True, capture_output=True)
    (wheel,) = (sources / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    return folder / "bin" / "python"
