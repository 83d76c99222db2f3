import pytest

from osbench.common.errors import UsageError
from osbench.edges.traces.analysis.span_changes import read_change
from osbench.edges.traces.model.span_keys import SpanKey

KEY = SpanKey("shop/web", "db", "SELECT name FROM items WHERE id = ?")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("shop/web db: -50%", 0.5),
        ("shop/web db SELECT name FROM items WHERE id = ?: 0", 0),
        ("shop/web  db SELECT*:-12.5 %", 0.875),
        ("shop/db: -100%", 0),
        ("shop/db SELECT*items*: 0", 0),
        ("*: -1%", 0.99),
    ],
)
def test_spans_that_a_change_means(text, left):
    change = read_change(text)

    assert change.left == left
    assert change.matches(KEY)


@pytest.mark.parametrize(
    "text", ["shop/web: 0", "db: 0", "shop/web d: 0", "SELECT*: 0", "[a-z]*: 0"]
)
def test_other_spans(text):
    assert not read_change(text).matches(KEY)


@pytest.mark.parametrize(
    "text", ["", "shop/web db", ": 0", "db: 50%", "db: -0%", "db: -101%", "db: x"]
)
def test_no_changes(text):
    with pytest.raises(UsageError, match=r"^--what-if .*-50%"):
        read_change(text)


def test_the_nearest_names_are_listed():
    known = [KEY, SpanKey("shop/web", "wsgi", "GET /items"), SpanKey("", "\x1b[31m", "")]

    said = read_change("shop/web selct name: 0").unknown(known)

    assert said.startswith("--what-if: no span matches 'shop/web selct name'; the nearest are")
    assert "shop/web db SELECT name FROM items WHERE id = ?" in said
    assert "there are" in read_change("zzz: 0").unknown(known)
    assert "\x1b" not in read_change("zzz: 0").unknown(known)
    assert "have no spans" in read_change("zzz: 0").unknown([])
