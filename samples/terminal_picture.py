"""Records the first run of the README in a terminal, as an animated SVG for the documentation.

Takes about 15 seconds; needs pyte, a terminal emulator.

    python samples/terminal_picture.py [docs/pictures/first-run.svg]
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import demo
import pyte
from pyte.screens import Char

TARGET = demo.SAMPLES.parent / "docs" / "pictures" / "first-run.svg"
COLUMNS, LINES = 100, 20
#: Pixels of a character.
WIDTH, HEIGHT = 8.0, 17.0
#: Between two frames at least, and for how long the last one stays, seconds.
STEP_S, REST_S = 0.5, 8.0
COLOURS = {
    "default": "#d1d5db",
    "black": "#6b7280",
    "red": "#f87171",
    "green": "#4ade80",
    "brown": "#fbbf24",
    "blue": "#60a5fa",
    "magenta": "#e879f9",
    "cyan": "#22d3ee",
    "white": "#f9fafb",
}


class Frame(NamedTuple):
    """The screen, from a time on."""

    at_s: float
    lines: tuple[tuple[Char, ...], ...]


def record(command: Sequence[str], home: Path, shown: str) -> list[Frame]:
    """Run a command in a terminal, typed as `shown`; return the contents of its screen over
    time.
    """
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    stream.feed(f"$ {shown}\r\n".encode())
    frames = [Frame(0.0, _lines(screen))]
    process, terminal = pty.fork()
    if not process:
        os.chdir(home)
        os.execve(  # noqa: S606 - our own command
            command[0], list(command), os.environ | {"HOME": str(home), "TERM": "xterm-256color"}
        )
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", LINES, COLUMNS, 0, 0))
    begun = time.monotonic()
    while True:
        ready, _, _ = select.select([terminal], [], [], STEP_S)
        if ready:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                # its other end is closed
                break
            stream.feed(data)
        now = time.monotonic() - begun
        lines = _lines(screen)
        if now - frames[-1].at_s >= STEP_S and lines != frames[-1].lines:
            frames.append(Frame(now, lines))
    os.waitpid(process, 0)
    frames.append(Frame(time.monotonic() - begun, _lines(screen)))
    return frames


def _lines(screen: pyte.Screen) -> tuple[tuple[Char, ...], ...]:
    return tuple(
        tuple(screen.buffer[line][column] for column in range(COLUMNS)) for line in range(LINES)
    )


def drawing(frames: Sequence[Frame]) -> str:
    """Return the frames as one SVG, each visible in its time; without animation, the last one."""
    total = frames[-1].at_s + REST_S
    width, height = COLUMNS * WIDTH + 24, LINES * HEIGHT + 24
    rules, groups = [], []
    for number, frame in enumerate(frames):
        last = number == len(frames) - 1
        begin = 100 * frame.at_s / total
        end = 100.0 if last else 100 * frames[number + 1].at_s / total
        before = "0% { visibility: hidden } " if number else ""
        after = "" if last else f" {end:.2f}% {{ visibility: hidden }}"
        rules.append(
            f"@keyframes f{number} {{ {before}{begin:.2f}% {{ visibility: visible }}{after} }}"
            f"#f{number} {{ animation: f{number} {total:.1f}s step-end infinite; "
            f"visibility: {'visible' if last else 'hidden'} }}"
        )
        groups.append(f'<g id="f{number}">{"".join(_rows(frame))}</g>')
    still = "@media (prefers-reduced-motion: reduce) { g { animation: none !important } }"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        'aria-label="A run of osbench in a terminal">\n'
        "<style>text { font: 13px ui-monospace, Menlo, Consolas, monospace; white-space: pre }"
        f"{''.join(rules)}{still}</style>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#111827"/>\n'
        + "\n".join(groups)
        + "\n</svg>\n"
    )


def _rows(frame: Frame) -> Iterator[str]:
    for number, line in enumerate(frame.lines):
        column = 0
        for (colour, bold), some in groupby(line, key=lambda char: (char.fg, char.bold)):
            text = "".join(char.data for char in some)
            if text.strip():
                weight = ' font-weight="bold"' if bold else ""
                fill = COLOURS.get(colour, f"#{colour}" if len(colour) == 6 else "#d1d5db")
                yield (
                    f'<text x="{12 + column * WIDTH:g}" y="{26 + number * HEIGHT:g}" '
                    f'textLength="{len(text) * WIDTH:g}" fill="{fill}"{weight}>'
                    f"{escape(text)}</text>"
                )
            column += len(text)


def main() -> None:
    """Record a run against the sample service."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    with tempfile.TemporaryDirectory(prefix="osbench-terminal-") as name:
        home = Path(name)
        with demo.web_service(home, "", "") as address:
            arguments = f"run --url {address}/items --rps 20 --duration 10 --limit failures=1%"
            frames = record(
                [str(demo.BIN / "osbench-coord"), *arguments.split()],
                home,
                f"osbench-coord {arguments}",
            )
    target.write_text(drawing(frames), encoding="utf-8")
    print(f"wrote {target}: {len(frames)} frames")


if __name__ == "__main__":
    main()
