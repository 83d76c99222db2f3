"""HAR files in the shapes in which Chrome and Firefox write them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGIN = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """What an entry is to be like; `body` is media type and text."""

    at_s: float = 0.0
    #: Requests without a time of their own end at once, so that none are under way together.
    took_s: float | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    json_body: Any = None
    form: Mapping[str, str] | None = None
    body: tuple[str, str] | None = None
    answer: Any = None
    response_type: str = "application/json"
    response_headers: Sequence[tuple[str, str]] = ()
    encoded: bool = False
    redirect: str = ""


def entry(method: str, url: str, **wishes: Any) -> dict[str, Any]:
    """An entry; keys that begin with _ are the browser's own, the others those of a wish."""
    more = {name: value for name, value in wishes.items() if name.startswith("_")}
    wish = _Wish(**{name: value for name, value in wishes.items() if name not in more})
    posted = wish.body
    if wish.json_body is not None:
        posted = ("application/json;charset=UTF-8", json.dumps(wish.json_body))
    if wish.form is not None:
        posted = (FORM, "&".join(f"{name}={value}" for name, value in wish.form.items()))
    text = wish.answer if isinstance(wish.answer, str) else json.dumps(wish.answer)
    content: dict[str, Any] = {"size": len(text), "mimeType": wish.response_type}
    if wish.answer is not None:
        content["text"] = base64.b64encode(text.encode()).decode() if wish.encoded else text
        if wish.encoded:
            content["encoding"] = "base64"
    sent = {"Host": url.split("/")[2], "User-Agent": "Mozilla/5.0", **wish.headers}
    request: dict[str, Any] = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/2",
        "headers": [{"name": name, "value": value} for name, value in sent.items()],
        "queryString": [],
        "cookies": [],
        "headersSize": -1,
        "bodySize": -1,
    }
    if posted is not None:
        request["postData"] = {"mimeType": posted[0], "text": posted[1]}
        if wish.form is not None:
            request["postData"]["params"] = [{"name": n, "value": v} for n, v in wish.form.items()]
    took_s = wish.took_s if wish.took_s is not None else 0.05 * (wish.at_s > 0)
    at = (BEGIN + timedelta(seconds=wish.at_s)).isoformat(timespec="milliseconds")
    return {
        "startedDateTime": at.replace("+00:00", "Z"),
        "time": took_s * 1000,
        "request": request,
        "response": {
            "status": wish.status,
            "statusText": "",
            "httpVersion": "HTTP/2",
            "headers": [{"name": name, "value": value} for name, value in wish.response_headers],
            "cookies": [],
            "content": content,
            "redirectURL": wish.redirect,
            "headersSize": -1,
            "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": took_s * 1000, "receive": 0},
        **more,
    }


def write_har(path: Path, entries: Sequence[Any], *, browser: str = "WebInspector") -> Path:
    """Write a HAR file, with a byte order mark as some tools do where the browser is not Chrome."""
    log = {"version": "1.2", "creator": {"name": browser, "version": "1"}, "entries": entries}
    mark = "" if browser == "WebInspector" else "\ufeff"
    path.write_text(mark + json.dumps({"log": log}), encoding="utf-8")
    return path


def shop(base: str, *, item: int = 7) -> list[dict[str, Any]]:
    """Who logs in, lists, looks at an item and orders it in the shop of the samples."""
    secret = "f3a9c1d2e4b5968778695a4b3c2d1e0f"
    page = {"_resourceType": "document", "_priority": "VeryHigh"}
    return [
        entry("GET", f"{base}/items", answer=[{"id": item, "name": "x"}], **page),
        entry("GET", f"{base}/logo.png", at_s=0.1, response_type="image/png"),
        entry("GET", "https://cdn.example/tag.js", at_s=0.1, response_type="text/javascript"),
        entry(
            *("POST", f"{base}/login"),
            at_s=1.15,
            json_body={"name": "ann", "password": "secret-ann"},
            answer={"name": "ann", "token": secret},
            response_headers=[("Set-Cookie", f"session={secret}; Path=/; HttpOnly")],
        ),
        entry(
            *("GET", f"{base}/items/{item}"),
            at_s=1.3,
            headers={"Cookie": f"session={secret}"},
            answer={"id": item, "name": "x"},
        ),
        entry(
            *("POST", f"{base}/orders"),
            at_s=1.4,
            status=201,
            headers={"Cookie": f"session={secret}", "Authorization": f"Bearer {secret}"},
            json_body={"item": item},
            answer={"item": item, "by": "ann"},
        ),
    ]
