"""Regular expressions of tasks: what they find, and those that are not taken."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.text.pages import page_patterns
from osbench.common.text.pages.page_patterns import (
    BadPattern,
    SearchedTooLong,
    check_pattern,
    found_by,
)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r'"nonce"\s*:\s*"([^"]+)"', 'x = {"nonce" : "ab\'c"}', "ab'c"),
        (r'csrf.*?content="([^"]*)"', '<meta name=csrf x content="t">', "t"),
        (r"(?i)token=(\w+)", "TOKEN=ab-c", "ab"),
        (r"(?i)A.*?B=([^X]*)X", "a b=cdx", "cd"),
        (r"\w+-\d{2}", "no ab-12", "ab-12"),
        (r"a{2,5}b", "aaaaaaab", "aaaaab"),
        (r"(?:x|yy)=(\d)", "yy=4", "4"),
        (r"token (\S+)", "no such", None),
        (r"token=(.*)", "token=", ""),
        (r"v=([^<]+)<", "v=\ufffd\xe4<", "\ufffd\xe4"),
    ],
)
def test_the_group_of_the_first_match_is_found(pattern, text, found):
    check_pattern(pattern)

    assert found_by(pattern, text) == found


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "is empty"),
        ("(", "cannot be read"),
        ("a" * 501, "at most 500 characters"),
        ("(a)(b)", "has 2 groups"),
        ("(?=a)b", "must not use"),
        (r"(a)\1", "must not use"),
        ("(a+)+$", "a repeat within a repeat"),
        ("(?:a|a)*b", "a repeat within a repeat"),
        ("(?:a?){30}b", "a repeat within a repeat"),
        ("(?:(?:a{1,9}){1,9})b", "a repeat within a repeat"),
        (".*.*x", "may take too long"),
        (r"\w*\d*\w*=", "may take too long"),
        ("a?" * 20 + "b", "may take too long"),
        ("a?" * 3 + ".*b", "may take too long"),
        ("(?i)a*[B]*A*[^Ab]*aa", "may take too long"),
        ("(?:a|b)" * 10 + "c", ""),
        ("(?:ab|cd|ef)" * 9 + "c", "may take too long"),
        ("(?i)a*A*a*b", "may take too long"),
    ],
)
def test_an_expression_that_may_hold_a_worker_up_is_refused(pattern, said):
    if not said:
        check_pattern(pattern)
        return
    with pytest.raises(BadPattern, match=re.escape(said)):
        check_pattern(pattern)


@given(
    st.lists(
        st.sampled_from(["a", "b", "[ab]", "[^a]", ".", r"\w", "(?:ab)", "(?:a|b)"]).flatmap(
            lambda one: st.sampled_from(["", "*", "+", "?", "{0,3}", "*?", "++"]).map(
                lambda how: one + how
            )
        ),
        min_size=1,
        max_size=8,
    ).map("".join),
    st.text(alphabet="ab", max_size=60),
)
def test_an_expression_that_is_taken_finds_what_python_finds(pattern, text):
    try:
        check_pattern(pattern)
    except BadPattern:
        return

    match = re.search(pattern, text)

    assert found_by(pattern, text) == (match[0] if match else None)


def test_a_text_that_takes_long_is_given_up(monkeypatch):
    # the bound is CPU, which a busy machine does not use up
    monkeypatch.setattr(page_patterns, "TEXT_S", 0.0)

    with pytest.raises(SearchedTooLong, match="took over 0 s of CPU"):
        found_by("a.*b", "a" * 5000)


def test_a_match_has_a_bounded_length():
    assert found_by(r"a([^b]*)b", "a" + "x" * 3000 + "b") == "x" * 3000
    assert found_by(r"a([^b]*)b", "a" + "x" * 5000 + "b") is None
