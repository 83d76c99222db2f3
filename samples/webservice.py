"""A small shop of items to put load on: WSGI, SQLite, and traced by OSProfiler.

    GET /items       ten items
    POST /items      adds the item of the JSON body, {"name": ...}
    GET /items/N     an item
    GET /report      counts the items; slow for about 3 % of requests
    POST /login      {"name": ..., "password": ...}: a token, also as the cookie `session`
    POST /orders     {"item": N} by who has logged in: with the cookie, or as a bearer of the token

The key that signs trace headers and the trace store come from the environment variables
OSPROFILER_HMAC_KEY and OSPROFILER_CONN_STR; without them the service is not traced.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import socketserver
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from osprofiler import notifier, profiler
from osprofiler.web import WsgiMiddleware

SCHEMA = "CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"
SLOW_SHARE = 0.03
SLOW_S = 0.3

Start = Callable[[str, list[tuple[str, str]]], Any]


class Shop:
    """The WSGI application."""

    def __init__(self, database: Path) -> None:
        self._database = database
        #: Names by token, of customers who have logged in.
        self._customers: dict[str, str] = {}
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(SCHEMA)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        routes = {
            ("GET", "/items"): self.list_items,
            ("POST", "/items"): self.add_item,
            ("GET", "/items/N"): self.show_item,
            ("GET", "/report"): self.report,
            ("POST", "/login"): self.login,
            ("POST", "/orders"): self.order,
        }
        path = re.sub(r"(?<=^/items/)\d+$", "N", environ["PATH_INFO"])
        route = routes.get((environ["REQUEST_METHOD"], path))
        status, answer = route(environ) if route else ("404 Not Found", {"error": "no such page"})
        body = json.dumps(answer).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        if route == self.login and "token" in answer:
            headers.append(("Set-Cookie", f"session={answer['token']}; Path=/; HttpOnly"))
        start(status, headers)
        return [body]

    def login(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Log in under any name with the password `secret-` and that name."""
        body = _document(environ)
        name = str(body.get("name", ""))
        if not name or body.get("password") != f"secret-{name}":
            return "401 Unauthorized", {"error": "wrong name or password"}
        token = secrets.token_hex(16)
        self._customers[token] = name
        return "200 OK", {"name": name, "token": token}

    def order(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Order an item."""
        cookie = SimpleCookie(environ.get("HTTP_COOKIE", "")).get("session")
        bearer = environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        name = self._customers.get(cookie.value if cookie is not None else bearer)
        if name is None:
            return "401 Unauthorized", {"error": "log in first"}
        return "201 Created", {"item": _document(environ).get("item"), "by": name}

    def show_item(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Return an item."""
        number = int(environ["PATH_INFO"].rpartition("/")[2])
        rows = self._query("SELECT id, name FROM items WHERE id = ?", number)
        if not rows:
            return "404 Not Found", {"error": "no such item"}
        return "200 OK", {"id": rows[0][0], "name": rows[0][1]}

    def list_items(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Return the ten newest items."""
        rows = self._query("SELECT id, name FROM items ORDER BY id DESC LIMIT 10")
        return "200 OK", [{"id": number, "name": name} for number, name in rows]

    def add_item(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Store the item of the body."""
        name = _document(environ).get("name")
        if not isinstance(name, str):
            return "400 Bad Request", {"error": 'the body must be {"name": ...}'}
        self._query("INSERT INTO items (name) VALUES (?)", name)
        return "201 Created", {"name": name}

    def report(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Count the items; a share of the reports is not cached and is computed slowly."""
        if random.random() < SLOW_SHARE:
            with profiler.Trace("recompute", info={"reason": "no cached report"}):
                time.sleep(SLOW_S)
        ((count,),) = self._query("SELECT count(*) FROM items")
        return "200 OK", {"items": count}

    def _query(self, statement: str, *parameters: str | int) -> list[tuple[Any, ...]]:
        with (
            profiler.Trace("db", info={"db": {"statement": statement}}),
            closing(sqlite3.connect(self._database, timeout=30)) as connection,
            connection,
        ):
            return connection.execute(statement, parameters).fetchall()


def _document(environ: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object in the body; empty if there is none."""
    try:
        body = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 512


class QuietHandler(WSGIRequestHandler):
    """Without a line on stderr for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def traced(application: Any) -> Any:
    """Return the application within OSProfiler's middleware, if the environment holds a key."""
    key = os.environ.get("OSPROFILER_HMAC_KEY")
    store = os.environ.get("OSPROFILER_CONN_STR")
    if not key or not store:
        return application
    driver = notifier.create(store, conf={}, project="shop", service="web", host="127.0.0.1")
    notifier.set(driver)
    return WsgiMiddleware(application, hmac_keys=key, enabled=True)


def main() -> None:
    """Serve until interrupted; the first line on stdout is the address."""
    parser = argparse.ArgumentParser(description="A small traced web service.")
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1; 0: a free one")
    parser.add_argument("--database", type=Path, default=Path("shop.sqlite3"), help="its file")
    args = parser.parse_args()
    try:
        application = traced(Shop(args.database))
    except sqlite3.Error as error:
        sys.exit(f"webservice.py: {args.database}: {error}; give another file with --database")
    try:
        server = make_server("127.0.0.1", args.port, application, Server, QuietHandler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        sys.exit(f"webservice.py: 127.0.0.1:{args.port}: {why}; give another --port, or 0")
    with server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
