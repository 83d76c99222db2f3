"""The option `--url` and the options of its request, as curl has them: arguments of a scenario.

For runs without a file, such as `run --url http://host/path --rps 20`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.common.files.named_files import read_stdin, read_text
from osbench.coordinator.front.cli.options.option_rules import Rule
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    repeated_option,
)

#: The scenario that makes the request.
SCENARIO = "HttpRequests.check_request"

_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_ONE_REQUEST = "is a part of the request to --url"

URL_RULES = (
    *(
        Rule(option=name, why=_ONE_REQUEST, needs=("--url",))
        for name in ("--method", "--header", "--body", "--insecure", "--ca")
    ),
    Rule(option="--insecure", why="checks no certificate", excludes=("--ca",)),
)


@dataclass(frozen=True, kw_only=True)
class UrlOptions(OptionSet):
    """Options of a request; `url` is None if no address is put under load."""

    url: str | None = option(
        "--url",
        metavar="URL",
        help="Address to put under load: a GET by default; a status below 400 is a success.",
    )
    method: str | None = option(
        "--method",
        "-X",
        metavar="METHOD",
        help="Method of the request. Default: GET, or POST with --body.",
    )
    header: tuple[str, ...] = repeated_option(
        "--header",
        "-H",
        metavar="'NAME: VALUE'",
        help="Header field of the request, or @FILE with a field per line. 'NAME:' leaves a field"
        " out, 'NAME;' sends it empty. May be repeated.",
    )
    body: tuple[str, ...] = repeated_option(
        "--body",
        "-d",
        metavar="TEXT",
        help="Body of the request; @FILE reads a file, @- standard input. JSON is sent as"
        " application/json, other text as a form. Several bodies are joined by &.",
    )
    insecure: bool = flag(
        "--insecure", "-k", help="Do not check the certificate of an https address."
    )
    ca: str | None = option(
        "--ca",
        "--cacert",
        metavar="FILE",
        help="File or folder with the certificates to trust, the same on all hosts with workers.",
    )

    def request(self) -> dict[str, Any]:
        """Return the arguments of the scenario `SCENARIO` for this request.

        Reads files that are given as @FILE. Raises UsageError if one cannot be read, `ca` does not
        exist, or a header is malformed.
        """
        headers = self._headers()
        found: dict[str, Any] = {"url": self.url, "method": (self.method or "GET").upper()}
        if self.body:
            found["method"] = (self.method or "POST").upper()
            found["data"] = "&".join(map(_body, self.body))
            if not any(name.lower() == "content-type" for name in headers):
                headers["Content-Type"] = _JSON if _is_json(found["data"]) else _FORM
        if self.insecure:
            found["verify"] = False
        elif self.ca is not None:
            found["verify"] = _authorities(self.ca)
        return {**found, "headers": headers} if headers else found

    def _headers(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for text in self.header:
            lines = [text]
            if text.startswith("@"):
                lines = [one for one in _of_file("--header", text).splitlines() if one.strip()]
            for line in lines:
                name, value = _field(line.strip())
                known = found.get(name)
                found[name] = f"{known}, {value}" if known and value else value
        return found


def _field(line: str) -> tuple[str, str | None]:
    """Return name and value of a header as curl reads it; None: it is not sent.

    Raises UsageError, without the line, which may be a secret.
    """
    name, colon, value = line.partition(":")
    if not colon and line.endswith(";"):
        name, value = line[:-1], ""
    elif not colon or not name.strip():
        raise UsageError("--header: write 'NAME: VALUE', such as 'Accept: text/html'")
    return name.strip(), value.strip() if value.strip() or not colon else None


def _body(text: str) -> str:
    if text == "@-":
        try:
            return read_stdin()
        except (OSError, UnicodeDecodeError):
            raise UsageError("--body @-: standard input is not UTF-8; pipe UTF-8 text") from None
    return _of_file("--body", text) if text.startswith("@") else text


def _authorities(name: str) -> str:
    """Return the absolute path of a file or folder. Raises UsageError if there is none."""
    path = Path(name).absolute()
    if not path.exists():
        raise UsageError(f"--ca {name}: there is no such file; give one in PEM")
    return str(path)


def _of_file(name: str, text: str) -> str:
    """Return the text of an option's `@FILE`. Raises UsageError if it is not readable as UTF-8."""
    path = Path(text[1:])
    try:
        return read_text(path)
    except OSError as error:
        raise UsageError(
            f"{name} {text}: cannot read the file: {error.strerror or error}; give a readable file"
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
