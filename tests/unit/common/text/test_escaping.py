"""Foreign text comes out as text: nothing in it steers a terminal."""

import json
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from osbench.common.config import logs
from osbench.common.text.escaping import escaped, escaped_in_json, on_page, one_line

#: Marks of direction, which reorder what is read.
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def steers(text, allowed=""):
    return [
        char
        for char in text
        if char not in allowed
        and (unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in BIDI)
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("bell\x07 nul\x00", r"bell\x07 nul\x00"),
        ("\x9b2J", r"\x9b2J"),
        ("del\x7f", r"del\x7f"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("two\nlines\tx\r", r"two\x0alines\x09x\x0d"),
        ("\U000e0041", r"\U000e0041"),
        ("half \ud800", r"half \ud800"),
        ("été 日本 🎉\u00a0", "été 日本 🎉\u00a0"),
    ],
)
def test_what_steers_a_terminal_is_escaped(text, shown):
    assert escaped(text) == shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_nothing_is_left_that_steers(text):
    assert steers(escaped(text)) == []
    assert steers(escaped(text, breaks=True), "\t\n") == []
    escaped(text).encode()


def test_a_log_record_is_one_line_that_steers_nothing():
    handler = logging.StreamHandler()
    handler.setFormatter(logs.SafeFormatter("%(levelname)s %(message)s"))
    try:
        raise ValueError("\x1b[2J in a traceback")
    except ValueError as error:
        record = logging.LogRecord(
            "a", logging.INFO, "f", 1, "worker %s", ("\x1b[31m\nERROR forged",), None
        )
        failed = logging.LogRecord(
            "a", logging.INFO, "f", 1, "x", (), (type(error), error, error.__traceback__)
        )

    assert handler.format(record) == r"INFO worker \x1b[31m\x0aERROR forged"
    assert steers(handler.format(failed), "\n") == []
    assert r"\x1b[2J" in handler.format(failed)


def test_strings_of_json_are_escaped_and_stay_json() -> None:
    text = "a\u202eb \x9b \u2028 \\ \n"

    packed = escaped_in_json(json.dumps([text], ensure_ascii=False))

    assert json.loads(packed) == ["a\\u202eb \\x9b \\u2028 \\ \n"]


def test_pages_show_strings_escaped_and_leave_markup_alone() -> None:
    assert on_page("a\x1b\n") == "a\\x1b\n"
    assert on_page(Markup("\x1b")) == "\x1b"
    assert on_page(7) == 7


def test_a_reason_of_several_lines_becomes_one_line() -> None:
    assert one_line("cannot read\n  the file:\r\n\tbroken \x1b[2J ") == (
        r"cannot read the file: broken \x1b[2J"
    )
