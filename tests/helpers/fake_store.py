"""Swift of the small cloud, answering as its API reference says: under /swift."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from helpers.json_server import QuietHandler


class StoreRoutes(QuietHandler):
    """Routes of a cloud's handler: containers, each with its objects by name."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]

    def _swift(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        kept: dict[str, dict[str, bytes]] = self.server.containers.setdefault(who["project"], {})
        names = [unquote(part) for part in rest]
        if not names:
            return self._names(kept)
        if len(names) == 1:
            return self._container(kept, names[0])
        if names[0] not in kept:
            return self._answer(404, None)
        objects, name = kept[names[0]], "/".join(names[1:])
        if self.command == "PUT":
            wanted = self.sent_headers().get("etag")
            if wanted and wanted != hashlib.md5(data).hexdigest():
                return self._answer(422, None)
            objects[name] = data
            return self._answer(201, None)
        if name not in objects:
            return self._answer(404, None)
        if self.command == "DELETE":
            del objects[name]
            return self._answer(204, None)
        self.send_response(200)
        self.send_header("Content-Length", str(len(objects[name])))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(objects[name])
        return None

    def _container(self, kept: dict[str, dict[str, bytes]], name: str) -> None:
        if self.command == "PUT":
            fresh = name not in kept
            kept.setdefault(name, {})
            return self._answer(201 if fresh else 202, None)
        if name not in kept:
            return self._answer(404, None)
        if self.command == "DELETE":
            if kept[name]:
                return self._answer(409, None)
            del kept[name]
            return self._answer(204, None)
        if self.command == "HEAD":
            return self._answer(204, None)
        return self._names(kept[name])

    def _names(self, kept: dict[str, Any]) -> None:
        first, after = self.params.get("prefix", ""), self.params.get("marker", "")
        end = self.params.get("delimiter", "")
        found = set()
        for name in kept:
            head, mark, _ = name.removeprefix(first).partition(end) if end else (name, "", "")
            shown = f"{first}{head}{mark}" if mark else name
            if name.startswith(first) and shown > after:
                found.add(shown)
        size = min(int(self.params.get("limit", 10_000)), self.server.store_page)
        self._answer(
            200,
            [
                {"name": name, "bytes": len(kept[name])} if name in kept else {"subdir": name}
                for name in sorted(found)[:size]
            ],
        )
