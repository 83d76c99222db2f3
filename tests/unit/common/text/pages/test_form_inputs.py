"""Inputs of pages as servers write them, and of pages that nobody should have written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.text.pages.form_inputs import FormInput, form_inputs, input_value

TWO_FORMS = """
<form id=search action="/find?a=1&amp;b=2"><input name=token value=first></form>
<form name="login"><input name=token value=second><input type=HIDDEN name=n value=3></form>
<input name=token value=third form=login>
"""


@pytest.mark.parametrize(
    ("page", "value"),
    [
        ('<input type="hidden" name="t" value="a">', "a"),
        ("<INPUT NAME='t' VALUE='a\"b'>", 'a"b'),
        ('<input name="t" value="&quot;&#39;&amp;x">', "\"'&x"),
        ("<input value=a name=t/>", None),
        ("<input value=a name=t >", "a"),
        ('<input name="t">', ""),
        ('<input name="t" name="u" value="a" value="b">', "a"),
        ('<input\n  name = "t"\n  value = "a\nb">', "a\nb"),
        ('<!-- <input name=t value=no> --><input name=t value="a">', "a"),
        ('<script>"<input name=t value=no>"</script><input name=t value=a>', "a"),
        ("<title><input name=t value=no></title><input name=t value=a>", "a"),
        ('<!-- never ends <input name="t" value="a">', None),
        ('<input name="t" value="a', None),
        ("<inputs name=t value=a>", None),
        ('<div><p <input name="t" value="a"></form></form>', "a"),
        ('<input name="\ufffd" value="\ufffd"><input name=t value=\xe4>', "\xe4"),
        ("", None),
    ],
)
def test_the_value_of_an_input_is_found(page, value):
    assert input_value(page, "t") == value


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("", "first"),
        ("search", "first"),
        ("/find?a=1&b=2", "first"),
        ("login", "second"),
        ("absent", None),
    ],
)
def test_of_two_forms_one_is_named(form, value):
    assert input_value(TWO_FORMS, "token", form) == value


def test_an_input_knows_its_form_and_its_kind():
    found = list(form_inputs(TWO_FORMS))

    assert found[2] == FormInput(name="n", value="3", form=("login",), kind="hidden")
    assert found[3].form == ("login",)


@pytest.mark.parametrize(
    "part",
    [
        *("<input ", '<input name="', "<!--", "<script>", "<input a=b ", '<input "', "<form "),
        *("<form\n", "<input /", "<input a=' ", "<input name=t value=a>"),
    ],
)
def test_a_huge_broken_page_is_passed_over_in_one_go(part):
    # 2 MiB: with work that grows by the square it would take hours
    assert isinstance(list(form_inputs(part * (2 * 1024 * 1024 // len(part)))), list)


@given(st.text(alphabet="<>/=\"' \n-!aintpufom", max_size=300))
def test_any_text_is_a_page(page):
    assert all(one.name for one in form_inputs(page))
