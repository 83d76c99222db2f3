"""The recorded terminal run of the README can be made again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from helpers.commands import environment
from helpers.readme import REPOSITORY
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

SVG = "{http://www.w3.org/2000/svg}"


def test_a_run_is_recorded_from_its_progress_to_its_exit_code(tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"

    subprocess.run(
        [sys.executable, str(REPOSITORY / "samples" / "terminal_picture.py"), str(picture)],
        env=environment(tmp_path),
        check=True,
        timeout=PATIENCE_S,
        stdout=subprocess.DEVNULL,
    )

    text = picture.read_text("utf-8")
    frames = ElementTree.fromstring(text).findall(f"{SVG}g")
    shown = ["".join(frame.itertext()) for frame in frames]
    assert len(frames) > 2
    # more lines than the picture has, as a late generator makes them, move the first one out
    assert "osbench-coord run --url" in shown[0]
    assert any("done" in frame for frame in shown[:-1])
    assert re.search(r"met\s+failure_rate", shown[-1])
    assert "Exit code" in shown[-1]
    # nothing is fetched from elsewhere
    assert "url(" not in text
    assert "href" not in text
