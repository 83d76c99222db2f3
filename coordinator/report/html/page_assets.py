"""Provides the parts that are equal in every report: style, scripts, templates and policy.

All pages of osbench have the same colours.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from osbench.coordinator.report.page_part import page_part_types

#: Scripts in the order in which they are joined into one.
_SCRIPTS = (
    "format.js",
    "axes.js",
    "timecharts.js",
    "histogram.js",
    "curve.js",
    "staircase.js",
    "outputs.js",
    "timeline.js",
    "iterations.js",
    "address.js",
    "chrome.js",
)
#: Of the live page alone, and the last one, after scripts of parts.
_LIVE_SCRIPT, _LAST_SCRIPT = "update.js", "start.js"
_LIGHT, _DARK = 0, 1


@dataclass(frozen=True, kw_only=True)
class PageFrame:
    """Parts that osbench's web server adds to a page: style sheet, bar at the top, and a script.

    The server sends the Content-Security-Policy itself.
    """

    #: Address of a style sheet: it stands before the page's own, whose colours of a theme that was
    #: chosen win.
    style: str
    #: HTML at the top of the page, and the address of its script; "" for none.
    bar: Markup
    script: str


@functools.cache
def text(name: str) -> str:
    """Return the content of a file in `assets`, by its path there; cached. Raises OSError."""
    folder = files("osbench.coordinator.report.html") / "assets"
    return folder.joinpath(*name.split("/")).read_text(encoding="utf-8")


@functools.cache
def text_of_part(name: str) -> str:
    """Return the content of a template or script of a `PagePart`: PACKAGE:FILE. Raises OSError."""
    package, _, file = name.partition(":")
    return (files(package) / "assets" / file).read_text(encoding="utf-8")


def template(name: str) -> str:
    """Return a template by its name: of the page, or of a part. Raises OSError."""
    return text_of_part(name) if ":" in name else text(f"templates/{name}")


@functools.cache
def colours() -> str:
    """Return the CSS variables of the colours of both themes; cached.

    The attribute `data-theme` of the page selects light or dark; without it, the system does. Print
    is light.
    """
    light, dark = _colours(_LIGHT), _colours(_DARK)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        "@media (prefers-color-scheme:dark){"
        f":root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        "@media print{:root,:root:not([data-theme=light]),[data-theme=dark]"
        f"{{color-scheme:light;{light}}}}}\n"
    )


@functools.cache
def style() -> str:
    """Return the style sheet of the report: colours first; cached."""
    return colours() + text("report.css")


@functools.cache
def scripts(live: bool) -> tuple[str, ...]:
    """Return two scripts: the charts' library, and the page's own; cached.

    `live`: the own script also updates the page.
    """
    parts = [name for one in page_part_types().values() for name in one.SCRIPTS]
    last = [_LAST_SCRIPT, _LIVE_SCRIPT] if live else [_LAST_SCRIPT]
    texts = [
        *(text(f"scripts/{name}") for name in _SCRIPTS),
        *map(text_of_part, parts),
        *(text(f"scripts/{name}") for name in last),
    ]
    own = "\n".join(texts)
    return text("echarts.js"), f'(() => {{\n"use strict";\n{own}}})();\n'


@functools.cache
def policy(live: bool) -> str:
    """Return the Content-Security-Policy of a page: only its own scripts and style, by hash.

    `live`: it may also connect to its server. Cached.
    """
    connect = "; connect-src 'self'" if live else ""
    return (
        f"default-src 'none'; script-src {hashes(scripts(live))}; style-src {hashes([style()])}; "
        f"img-src data:{connect}; base-uri 'none'; form-action 'none'"
    )


@functools.cache
def still_policy() -> str:
    """Return the Content-Security-Policy of a page without scripts: only its own style, by hash."""
    styles = hashes([style()])
    return (
        f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _colours(theme: int) -> str:
    tokens = json.loads(text("tokens.json"))
    return "".join(f"--{name}:{values[theme]};" for name, values in tokens.items())


def hashes(blocks: Sequence[str]) -> str:
    """Return the SHA-256 sources of scripts or styles for a policy, separated by blanks."""
    digests = (hashlib.sha256(block.encode()).digest() for block in blocks)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
