"""A real browser that watches a live view, and notes all that should not happen."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from servers.child import PATIENCE_S

#: Where screenshots go, if anywhere.
SHOTS = os.environ.get("OSBENCH_SCREENSHOTS", "")

#: Violations of the page's policy are no errors of the console everywhere.
_LISTEN = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  event => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""


class Browsed:
    """One tab, without cookies at first."""

    def __init__(self, context: Any) -> None:
        from playwright.sync_api import Error, expect

        self._expect, self._navigating = expect, Error
        self._context = context
        self._page = context.new_page()
        self._page.set_default_timeout(PATIENCE_S * 1000)
        self._errors: list[str] = []
        self._hosts: set[str] = set()
        self._page.add_init_script(_LISTEN)
        self._page.on("console", self._note)
        self._page.on("pageerror", lambda error: self._errors.append(str(error)))
        self._page.on("request", lambda one: self._hosts.add(one.url.split("/")[2]))

    @classmethod
    @contextlib.contextmanager
    def opened(cls, chromium: Any, width: int = 1280, theme: str = "light") -> Iterator[Self]:
        """A tab, closed in the end."""
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        try:
            yield cls(context)
        finally:
            context.close()

    @property
    def url(self) -> str:
        """What stands in the address bar."""
        return str(self._page.url)

    def goto(self, url: str) -> None:
        """Open an address."""
        self._page.goto(url, wait_until="domcontentloaded")

    def reload(self) -> None:
        """Load the page again."""
        self._page.reload(wait_until="domcontentloaded")

    def click(self, selector: str) -> None:
        """Click on an element."""
        self._page.click(selector)

    def choose(self, selector: str, label: str) -> None:
        """Choose an entry of a list."""
        self._page.select_option(selector, label=label)

    def accept_dialogs(self, *answers: str) -> None:
        """Say yes to questions; answer those that want a text in turn, the last one for good."""
        left = list(answers or ("",))
        self._page.on("dialog", lambda dialog: dialog.accept(left.pop(0) if left[1:] else left[0]))

    def shoot(self, name: str) -> None:
        """Keep a picture, where that is wanted."""
        if SHOTS:
            self._page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)

    # what it shows

    def done(self) -> int:
        """Iterations of the first workload that are done, as it says; 0 before it says so."""
        figures = self._page.locator("#live-now .live-load dd").all_text_contents()
        return int(re.split(r"\D", figures[0].replace(",", ""))[0]) if figures else 0

    def text(self, selector: str) -> str:
        """The text of the first such element; "" if there is none."""
        return next(iter(self._page.locator(selector).all_text_contents()), "")

    def count(self, selector: str) -> int:
        """Number of such elements now."""
        return int(self._page.locator(selector).count())

    def width(self, selector: str) -> float:
        """Pixels of the first such element."""
        box = self._page.locator(selector).first.bounding_box()
        return float(box["width"]) if box else 0.0

    def shown(self, selector: str) -> list[str]:
        """The texts of elements that are visible."""
        found = self._page.locator(selector).all()
        return [str(one.text_content()) for one in found if one.is_visible()]

    def worker_rows(self) -> list[str]:
        """The rows of workers in the table of workloads."""
        return list(self._page.locator("#live-now tr.live-part").all_text_contents())

    def points(self) -> int:
        """Points that the first chart of the first workload has drawn."""
        found = self._page.evaluate(
            "() => { const one = document.getElementById('w1-load'); "
            "const chart = one && echarts.getInstanceByDom(one); "
            "return chart ? chart.getOption().series[0].data.length : 0; }"
        )
        return int(found)

    def seconds_at_load(self) -> float:
        """How many seconds of load the page had when it was loaded."""
        found = json.loads(self._page.locator("#data").text_content() or "{}")
        load = found["workloads"][0]["load"]
        counts = load["started"]
        # from the first second on, not only what came last
        return float(load["width"]) * len(counts) if sum(counts[:4]) else 0.0

    def expect_text(self, selector: str, text: str | re.Pattern[str]) -> None:
        """Wait until an element contains a text."""
        self._expect(self._page.locator(selector)).to_contain_text(text, timeout=PATIENCE_S * 1000)

    def expect_disabled(self, selector: str) -> None:
        """Wait until a button cannot be pressed."""
        self._expect(self._page.locator(selector)).to_be_disabled(timeout=PATIENCE_S * 1000)

    def expect_count(self, selector: str, count: int) -> None:
        """Wait until there are so many elements."""
        self._expect(self._page.locator(selector)).to_have_count(count, timeout=PATIENCE_S * 1000)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the page comes to show."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            # the page may be loading itself anew just now
            with contextlib.suppress(self._navigating):
                if condition():
                    return
            assert time.monotonic() < deadline, self._page.content()[:3000]
            self._page.wait_for_timeout(100)

    def background(self) -> str:
        """The colour of the page."""
        return str(self._page.evaluate("() => getComputedStyle(document.body).backgroundColor"))

    def assert_fits(self) -> None:
        """Nothing sticks out to the right: tables scroll inside of their own boxes."""
        wide, room, widest = self._page.evaluate(
            """() => {
              const { scrollWidth, clientWidth } = document.documentElement;
              const right = (one) => one.getBoundingClientRect().right;
              const all = [...document.body.querySelectorAll("*")];
              const widest = all.reduce((most, one) => (right(one) > right(most) ? one : most));
              return [scrollWidth, clientWidth, widest.outerHTML.slice(0, 200)];
            }"""
        )
        assert wide <= room, (self.url, wide, room, widest)

    def resize(self, width: int) -> None:
        """Make the window so many pixels wide, and let the page lay itself out."""
        self._page.set_viewport_size({"width": width, "height": 900})
        self._page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")

    def focused_by_tab(self, times: int) -> list[str]:
        """The elements that the Tab key reaches, in order; "" for one that is not to be seen."""
        found = []
        self._page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
        for _ in range(times):
            self._page.keyboard.press("Tab")
            found.append(
                self._page.evaluate(
                    """() => {
                      const one = document.activeElement;
                      if (one === document.body) return "end";
                      const { width, height } = one.getBoundingClientRect();
                      const ring = getComputedStyle(one).outlineStyle !== "none";
                      // a point of a chart is a line without a length
                      const drawn = getComputedStyle(one.firstElementChild ?? one);
                      const dot = parseFloat(drawn.strokeWidth) > 8;
                      return (width && height && ring) || dot ? one.outerHTML.slice(0, 80) : "";
                    }"""
                )
            )
        return found[: found.index("end")] if "end" in found else found

    def print_on_paper(self, *, over: bool = False) -> None:
        """Show the page as a sheet of A4 at 96 pixels per inch would; `over`: on screen again."""
        self._page.emulate_media(media="screen" if over else "print")
        self.resize(1280 if over else 794)

    def serious(self) -> list[str]:
        """What axe finds that keeps people out. Skips where it is not installed."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright")
        results = axe.Axe().run(self._page)
        return [
            f"{one['id']}: {one['nodes'][0]['html']}"
            for one in results.response["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    def assert_clean(self) -> None:
        """No error, no violation of the policy, no request to another host."""
        assert self._errors == []
        assert self.violations() == []
        assert len(self._hosts) == 1, self._hosts

    def violations(self) -> list[str]:
        """Violations of the policy of the page."""
        return list(self._page.evaluate("() => window.violations"))

    def _note(self, message: Any) -> None:
        # a server that has ended with its run is what the page then tells
        if message.type == "error" and "ERR_CONNECTION_REFUSED" not in message.text:
            self._errors.append(message.text)

    @contextlib.contextmanager
    def foreign_site(self) -> Iterator[ForeignSite]:
        """A page of another port of this host in the same browser: it is sent the cookies."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Nothing)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        page = self._context.new_page()
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            yield ForeignSite(page)
        finally:
            page.close()
            server.shutdown()
            thread.join()
            server.server_close()


class ForeignSite:
    """What a hostile page tries."""

    def __init__(self, page: Any) -> None:
        self._page = page

    def post(self, url: str) -> str:
        """Send a POST with the cookies that the browser has."""
        return self._fetch(url, {"method": "POST", "mode": "no-cors", "credentials": "include"})

    def read(self, url: str) -> str:
        """Read an answer."""
        return self._fetch(url, {"credentials": "include"})

    def frame(self, url: str) -> str:
        """Show a page inside of its own."""
        self._page.evaluate(
            "url => new Promise(done => { const one = document.createElement('iframe'); "
            "one.onload = done; one.onerror = done; one.src = url; document.body.append(one); })",
            url,
        )
        frames = [one.url for one in self._page.frames[1:]]
        return "refused" if all(one.startswith("chrome-error:") for one in frames) else "reached"

    def _fetch(self, url: str, options: dict[str, str]) -> str:
        found = self._page.evaluate(
            "async ([url, options]) => { try { await fetch(url, options); return 'reached'; } "
            "catch (error) { return 'refused'; } }",
            [url, options],
        )
        return str(found)


class _Nothing(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """An empty page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body></body>")

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
