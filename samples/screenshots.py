"""Makes the sample report of the documentation, and its pictures, from a real run.

The run takes two minutes; it has an open and a closed load, failures, a hook and traces. Pictures
need Playwright and Chromium; with --report alone only the report is made.

    python samples/screenshots.py                      docs/sample-report.html and docs/pictures
    python samples/screenshots.py --run DIRECTORY      the same of a run that is there already
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import demo

from osbench.coordinator.report.html import render_page
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.storage.run_directory import RunDirectory

DOCS = demo.SAMPLES.parent / "docs"
TASK = demo.SAMPLES / "tasks" / "evening.yaml"
#: Exit codes of a run whose report is worth a picture: its criteria held or not.
JUDGED = (0, 1, 4)
#: Chromium as a guest: no profile, no network.
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


@dataclass(frozen=True)
class Picture:
    """A picture of the report: its section, its theme, its size."""

    name: str
    anchor: str = ""
    theme: str = "light"
    width: int = 1280
    height: int = 900


PICTURES = (
    Picture("report-overview"),
    Picture("report-overview-dark", theme="dark"),
    Picture("report-workload", anchor="w2", height=1150),
    Picture("report-trace", anchor="traces", height=1100),
    Picture("report-phone", width=390, height=844),
)


def run(home: Path) -> Path:
    """Run the task against the sample service; return the run's directory."""
    hmac_key = secrets.token_hex(16)
    (home / "osbench.conf").write_text(f"[DEFAULT]\ndata_dir = {home}/data\n")
    with (
        demo.trace_store(home) as traces,
        demo.web_service(home, hmac_key, traces) as address,
    ):
        shop = {
            "services": {"shop": address},
            "profiler_hmac_key": hmac_key,
            "profiler_conn_str": traces,
        }
        record = home / "shop.json"
        record.touch(mode=0o600)
        record.write_text(json.dumps({"osbench": shop}))
        demo.osbench(home, "deployment", "create", "--name", "shop", "--file", str(record))
        arguments = ["--deployment", "shop", "--tag", "sample"]
        url = json.dumps({"url": address})
        code = demo.osbench(home, "run", str(TASK), *arguments, "--task-args", url)
    if code not in JUDGED:
        sys.exit(f"The run ended with exit code {code}.")
    return max((home / "data" / "runs").iterdir())


def take_pictures(report: Path, folder: Path) -> None:
    """Make PICTURES of a report."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(exist_ok=True)
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Pictures need Chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for picture in PICTURES:
            size: Any = {"width": picture.width, "height": picture.height}
            context = browser.new_context(viewport=size, **_theme(picture), reduced_motion="reduce")
            page = context.new_page()
            page.goto(report.resolve().as_uri() + (f"#{picture.anchor}" if picture.anchor else ""))
            if picture.anchor == "traces":
                open_example(page)
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"{picture.name}.png")
            context.close()
        browser.close()


def open_example(page: Any) -> None:
    """Open the waterfall near p99, or else the first one."""
    examples = page.locator("details.trace", has_text="near p99")
    first = examples.first if examples.count() else page.locator("details.trace").first
    first.locator("> summary").click()
    first.evaluate("found => found.scrollIntoView()")


def _theme(picture: Picture) -> Mapping[str, Any]:
    return {"color_scheme": picture.theme}


def main() -> None:
    """Make the report, then its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path, help="directory of a run that is there already")
    parser.add_argument("--report", type=Path, default=DOCS / "sample-report.html")
    parser.add_argument("--pictures", type=Path, default=DOCS / "pictures")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="osbench-pictures-") as home:
        directory = asked.run or run(Path(home))
        report = render_page(gather(read_facts(RunDirectory(directory))))
    asked.report.write_text(report, encoding="utf-8")
    take_pictures(asked.report, asked.pictures)


if __name__ == "__main__":
    main()
