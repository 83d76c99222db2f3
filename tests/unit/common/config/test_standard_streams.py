"""Streams whose encoding lacks a character print a similar one."""

from __future__ import annotations

import codecs
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.config import standard_streams

codecs.register_error(standard_streams._SIMILAR, standard_streams._similar)

PROGRAM = """
import sys
from osbench.common.config.standard_streams import secure_standard_streams
secure_standard_streams()
print("größe ✓ 日本 ≤ 3 µs ▁█ \\ud800.")
print("größe ✓", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("encoding", "printed", "said"),
    [
        ("ascii", "grosse + ?? <= 3 us _# ?.", "grosse +"),
        ("latin-1", "größe + ?? <= 3 µs _# ?.", "größe +"),
        ("cp1252", "größe + ?? <= 3 µs _# ?.", "größe +"),
        ("utf-8", "größe ✓ 日本 ≤ 3 µs ▁█ ?.", "größe ✓"),
        # a user's own choice
        ("ascii:replace", "gr??e ? ?? ? 3 ?s ?? ?.", "grosse +"),
    ],
)
def test_what_an_encoding_lacks_is_replaced(encoding: str, printed: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.decode(encoding.partition(":")[0]) == f"{printed}\n"
    assert done.stderr.decode(encoding.partition(":")[0]) == f"{said}\n"


@given(text=st.text(st.characters()), encoding=st.sampled_from(["ascii", "latin-1", "utf-8"]))
def test_no_text_fails(text: str, encoding: str) -> None:
    written = text.encode(encoding, standard_streams._SIMILAR).decode(encoding)

    assert written.count("\n") == text.count("\n")
