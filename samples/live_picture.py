"""Makes the picture of the live view for the documentation, from a run that goes on.

Takes about a minute and a half; needs Playwright and Chromium.

    python samples/live_picture.py
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import demo
from screenshots import DOCS, FLAGS, TASK

#: The second workload is in the middle of its load then, seconds after the run begins.
WAIT_S = 65


def picture(url: str, target: Path) -> None:
    """Open the live view, wait, and save a picture of it."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("The picture needs Chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(
            viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        page.goto(url)
        page.wait_for_timeout(WAIT_S * 1000)
        page.screenshot(path=target)
        browser.close()


def main() -> None:
    """Run the task against the sample service, and take the picture meanwhile."""
    with tempfile.TemporaryDirectory(prefix="osbench-live-") as name:
        home, hmac_key = Path(name), secrets.token_hex(16)
        (home / "osbench.conf").write_text(f"[DEFAULT]\ndata_dir = {home}/data\n")
        with (
            demo.trace_store(home) as traces,
            demo.web_service(home, hmac_key, traces) as address,
        ):
            command = [
                *(str(demo.BIN / "osbench-coord"), "run", str(TASK), "--quiet", "--web", "0"),
                *("--config-file", str(home / "osbench.conf")),
                *("--task-args", json.dumps({"url": address})),
            ]
            with subprocess.Popen(
                command, cwd=demo.SAMPLES.parent, stderr=subprocess.PIPE, text=True
            ) as run:
                assert run.stderr is not None
                found = re.search(r"http://\S+", run.stderr.readline())
                assert found
                picture(found.group(), DOCS / "pictures" / "live-view.png")
                run.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
