"""Pages in one file, without scripts, that other packages fill: their environment and policy."""

from __future__ import annotations

import functools
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from osbench.common.text.escaping import on_page
from osbench.coordinator.report.html import page_assets


@functools.cache
def page_style(package: str, name: str) -> str:
    """Return the colours of all pages and the style sheet `name` in the assets of a package."""
    own = files(package).joinpath("assets", name)
    return page_assets.colours() + own.read_text("utf-8")


def page_policy(package: str, name: str) -> str:
    """Return the Content-Security-Policy of a page with only its own style, by hash."""
    style = page_assets.hashes([page_style(package, name)])
    return f"default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'"


def page_environment(package: str, name: str) -> Environment:
    """Return a new Jinja environment with the templates in the assets of a package.

    Templates have `style`, of the file `name`, and `policy`.
    """
    environment = Environment(
        loader=PackageLoader(package, "assets"),
        autoescape=True,
        finalize=on_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # osbench's own file, and its hash
    environment.globals.update(
        style=Markup(page_style(package, name)),  # noqa: S704
        policy=Markup(page_policy(package, name)),  # noqa: S704
    )
    return environment
