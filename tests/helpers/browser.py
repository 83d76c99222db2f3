"""A headless Chromium of the machine, driven by Playwright, and what it must not do with a page."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from servers.child import PATIENCE_S

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
#: Keeps what the policy of a page has refused.
_LISTEN = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser with a new profile; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page, and what went wrong in it."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def wrong(self) -> list[str]:
        """Messages, errors, refusals of its policy, and requests but that of the page itself."""
        refused: list[str] = self.page.evaluate("globalThis.violations || []")
        return [*self.said, *refused, *self.asked[1:]]


@contextlib.contextmanager
def watched(browser: Any, url: str, **options: Any) -> Iterator[Watched]:
    """A page of a fresh context, opened; `options` are those of Playwright's context."""
    context = browser.new_context(**{"reduced_motion": "reduce", **options})
    try:
        found = Watched(context.new_page())
        found.page.set_default_timeout(PATIENCE_S * 1000)
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.add_init_script(_LISTEN)
        found.page.goto(url)
        yield found
    finally:
        context.close()
