"""The options `--url`, `--method`, `--header` and `--body`: arguments of a scenario of one request.

For runs without a file, such as `run --url http://host/path --rps 20`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.common.named_files import read_text
from osbench.coordinator.cli.options.option_rules import Rule
from osbench.coordinator.cli.options.option_table import OptionSet, option, repeated

#: The scenario that makes the request.
SCENARIO = "HttpRequests.check_request"

_ONE_REQUEST = "is a part of the request to --url"

URL_RULES = tuple(
    Rule(option=name, why=_ONE_REQUEST, needs=("--url",))
    for name in ("--method", "--header", "--body")
)


@dataclass(frozen=True, kw_only=True)
class UrlOptions(OptionSet):
    """Options of a request; `url` is None if no address is put under load."""

    url: str | None = option(
        "--url",
        metavar="URL",
        help="Put one address under load: a GET, where any status below 400 is a success.",
    )
    method: str | None = option(
        "--method", metavar="METHOD", help="Method of the request; with --body the default is POST."
    )
    header: tuple[str, ...] = repeated(
        "--header",
        "-H",
        metavar="'NAME: VALUE'",
        help="Header field of the request, or @FILE with one a line; may be repeated.",
    )
    body: str | None = option(
        "--body",
        "-d",
        metavar="TEXT",
        help="Body of the request, or @FILE; JSON is sent as application/json.",
    )

    def request(self) -> dict[str, Any]:
        """Return the arguments of the scenario `SCENARIO` for this request.

        Reads files that are given as @FILE. Raises UsageError if one cannot be read, or for a
        malformed header.
        """
        headers = self._headers()
        found: dict[str, Any] = {"url": self.url, "method": (self.method or "GET").upper()}
        if self.body is not None:
            found["method"] = (self.method or "POST").upper()
            found["data"] = self._body(self.body)
            if not any(name.lower() == "content-type" for name in headers) and _is_json(
                found["data"]
            ):
                headers["Content-Type"] = "application/json"
        return {**found, "headers": headers} if headers else found

    def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for text in self.header:
            lines = [text]
            if text.startswith("@"):
                lines = [one for one in _of_file("--header", text).splitlines() if one.strip()]
            for line in lines:
                name, colon, value = line.partition(":")
                if not colon or not name.strip():
                    # it may be a secret
                    raise UsageError("--header: write 'NAME: VALUE', such as 'Accept: text/html'")
                name, value = name.strip(), value.strip()
                found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    def _body(self, text: str) -> str:
        return _of_file("--body", text) if text.startswith("@") else text


def _of_file(name: str, text: str) -> str:
    """Return the content of the file that an option names as `@FILE`.

    Raises UsageError if it cannot be read or is not UTF-8.
    """
    path = Path(text[1:])
    try:
        return read_text(path)
    except OSError as error:
        raise UsageError(
            f"{name} {text}: cannot read the file: {error.strerror or error}; give one that can be "
            "read"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(
            f"{name} {text}: the file is not text in UTF-8; save it in UTF-8"
        ) from None


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False
