"""A report served with a bar above it: its policy allows what both need, and no more."""

from __future__ import annotations

from osbench.coordinator.web.report_page import merged, served

PAGE = (
    '<!doctype html><html><head><meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; script-src 'sha256-abc='; style-src 'sha256-def='; "
    "img-src data:; base-uri 'none'; form-action 'none'\">"
    '<title>t</title></head><body class="x"><main>m</main></body></html>'
)


def test_the_policy_is_in_the_header_alone() -> None:
    page, policy = served(PAGE, "")

    assert "http-equiv" not in page
    assert "script-src 'sha256-abc=' 'self'" in policy
    assert "<script" not in page


def test_the_bar_stands_first_and_its_script_last() -> None:
    page, _ = served(PAGE, '<section id="live"></section>')

    assert '<body class="x"><section id="live"></section><main>' in page
    assert page.endswith('<script src="/static/live.js" defer></script>\n</body></html>')


def test_the_style_of_the_page_comes_after_that_of_the_bar() -> None:
    page, _ = served(PAGE.replace("<title>", "<style>own</style><title>"), "")

    assert page.index("web.css") < page.index("<style>own")


def test_nothing_is_allowed_but_what_one_of_them_needs() -> None:
    rules = dict(
        rule.split(" ", 1)
        for rule in merged("default-src 'none'; style-src 'sha256-d='; img-src data:").split("; ")
    )

    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'sha256-d=' 'self'",
        "img-src": "data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }


def test_a_page_without_a_policy_gets_that_of_the_server() -> None:
    _, policy = served("<html><head></head><body></body></html>", "")

    assert "default-src 'none'" in policy
