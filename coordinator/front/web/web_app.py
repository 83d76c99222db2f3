"""The web server's application: pages, event streams, and requests to change runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.front.web import live_documents, report_views, web_pages
from osbench.coordinator.front.web.access_tokens import AccessTokens, Role
from osbench.coordinator.front.web.bodies import bounded_body, page_response, parse_change
from osbench.coordinator.front.web.feed import Feed
from osbench.coordinator.front.web.live_documents import ListDocument, RunDocument
from osbench.coordinator.front.web.request_guard import RequestGuard
from osbench.coordinator.front.web.run_list import ListChoice
from osbench.coordinator.front.web.run_starts import RunStarts
from osbench.coordinator.front.web.runs_shown import RunsShown
from osbench.coordinator.front.web.start_pages import StartPages
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.storage import control_requests
from osbench.coordinator.results.storage.run_directory import RunDirectory

_KINDS = {"web.css": "text/css", "live.js": "text/javascript", "start.js": "text/javascript"}
#: Feeds that are kept: feeds of runs without a client go first.
_FEEDS = 200


class WebApp:
    """The ASGI application of the server (`asgi`). One event loop runs it; threads render pages."""

    def __init__(
        self,
        shown: RunsShown,
        tokens: AccessTokens,
        names: frozenset[str],
        starts: RunStarts | None = None,
    ) -> None:
        """`shown`: the runs to show. `names`: host names allowed in requests, lower case.

        `starts`: starts runs from the page; None if the page can start none.
        """
        self._shown = shown
        self._starts = starts is not None
        self._tokens = tokens
        self._feeds: dict[str, Feed] = {}
        #: The last report that was drawn, with what it is of: drawing a long one takes seconds.
        self._drawn: tuple[tuple[str, int, bool], str] | None = None
        self._drawing = asyncio.Lock()
        #: Somebody has looked at a run.
        self.was_seen = False
        routes = [
            Route("/", self.index),
            Route("/frames", self.index_frames),
            Route("/compare", self.compare),
            Route("/runs/{run}", self.run),
            Route("/runs/{run}/frames", self.run_frames),
            Route("/runs/{run}/trends", self.trends),
            Route("/runs/{run}/abort", self.abort, methods=["POST"]),
            Route("/runs/{run}/control", self.control, methods=["POST"]),
            Route("/static/{name}", self.static),
            *(StartPages(starts, shown, tokens).routes if starts is not None else ()),
        ]
        handlers: dict[Any, Any] = {404: self._unknown, OsbenchError: self._refused}
        app = Starlette(routes=routes, exception_handlers=handlers)
        self.asgi: ASGIApp = RequestGuard(app, tokens, names)

    async def close(self) -> None:
        """Send a last document to the clients of all feeds, and end their streams."""
        await asyncio.gather(*(feed.close() for feed in self._feeds.values()))

    # lists

    async def index(self, request: Request) -> Response:
        """Respond with the list of runs that q, sort and order in the URL choose.

        Without these and `all`, only the newest. If the server shows only one run, redirects to it.
        """
        if self._shown.only:
            return RedirectResponse(f"/runs/{self._shown.only}", 303)
        choice = ListChoice.of(request.query_params)
        usual = choice.is_usual and "all" not in request.query_params
        if usual:
            rows, total = await asyncio.to_thread(self._shown.newest)
            found = total
        else:
            rows, found, total = await asyncio.to_thread(self._shown.chosen, choice)
        page = web_pages.render(
            "list.html.j2",
            title="Runs · osbench",
            # the stream knows the newest only
            live=usual,
            query=choice.query,
            line=live_documents.list_line(rows, total, self._shown.trouble)
            if usual
            else f"{found:,} of {total:,} runs",
            rows=web_pages.markup(web_pages.rows(rows, found, choice)),
            starts=self._may_start(request),
        )
        return page_response(page)

    async def index_frames(self, request: Request) -> Response:
        """Respond with the event stream of the newest runs' list; 404 if only one run is shown."""
        if self._shown.only:
            return await self._unknown(request, UsageError(""))
        return self._stream(request, "", lambda: ListDocument(self._shown))

    async def compare(self, request: Request) -> Response:
        """Respond with the comparison of the two runs in `?run=A&run=B`.

        Status 400 unless these are two different runs that exist, or if the server shows only one
        run.
        """
        names = request.query_params.getlist("run")
        looked_up = [await asyncio.to_thread(self._shown.find, name) for name in names[:2]]
        found = [one for one in looked_up if one is not None]
        if len(names) != 2 or len(found) != 2 or names[0] == names[1] or self._shown.only:
            text = "Tick two finished runs in the list."
            return page_response(web_pages.message("Compare", text, to_list=True), 400)
        bar = web_pages.links(starts=self._may_start(request))
        async with self._drawing:
            page = await asyncio.to_thread(
                lambda: report_views.comparison(
                    self._shown.data_dir, (found[0], found[1]), self._shown.shared_runs(), bar
                )
            )
        return page_response(page, policy=report_views.comparison_policy())

    # runs

    async def run(self, request: Request) -> Response:
        """Respond with the report of an ended run, or the live page of a running run.

        Sets `was_seen`. Status 404 if there is no such run.
        """
        self.was_seen = True
        directory = await self._found(request)
        if directory is None:
            return await self._unknown(request, UsageError(""))
        if await asyncio.to_thread(_goes_on, directory):
            return await self._live(directory, request.scope["role"])
        text = await self._report(directory, starts=self._may_start(request))
        return page_response(text, policy=report_views.report_policy(live=False))

    async def _live(self, directory: RunDirectory, role: Role) -> Response:
        document = await asyncio.to_thread(live_documents.first_look, directory)
        facts = document.facts
        name = directory.path.name
        bar = web_pages.render(
            "bar.html.j2",
            frames=f"/runs/{name}/frames",
            line=document.line,
            begun=facts is not None,
            workloads=document.workloads,
            after="reload" if self._shown.stays else "",
            list=not self._shown.only,
            abort_key=self._tokens.abort_key if role is Role.ABORT else "",
            abort_url=f"/runs/{name}/abort",
            control_url=f"/runs/{name}/control",
            now=web_pages.markup(document.now),
            failures=web_pages.markup(document.failures),
            log_line=document.log_line,
            log=web_pages.markup(document.log),
        )
        if facts is None:
            text = "The run has no results yet; this page shows them as soon as there are some."
            title = f"Run {name}"
            only = bool(self._shown.only)
            return page_response(web_pages.message(title, text, to_list=not only, bar=bar))
        page = await asyncio.to_thread(report_views.live, facts, bar)
        return page_response(page, policy=report_views.report_policy(live=True))

    async def _report(self, directory: RunDirectory, *, starts: bool) -> str:
        """Render a single report at a time; the last one is cached until its files change."""
        async with self._drawing:
            key = (directory.path.name, await asyncio.to_thread(_changed_at, directory), starts)
            if self._drawn is None or self._drawn[0] != key:
                self._drawn = (key, await asyncio.to_thread(self._draw, directory, starts))
            return self._drawn[1]

    def _draw(self, directory: RunDirectory, starts: bool) -> str:
        name, bar = directory.path.name, ""
        if not self._shown.only:
            # what an archive has was not requested here
            again = starts and self._shown.here(name) is not None
            bar = web_pages.links(name, *self._shown.before(name), starts=starts, again=again)
        return report_views.report(read_facts(directory), bar)

    async def run_frames(self, request: Request) -> Response:
        """Respond with the event stream of a run; status 404 if there is no such run."""
        directory = await self._found(request)
        if directory is None:
            return await self._unknown(request, UsageError(""))
        return self._stream(request, directory.path.name, lambda: RunDocument(directory))

    async def trends(self, request: Request) -> Response:
        """Respond with the trend of a run: percentiles over runs of the same task and load.

        Status 404 if there is no such run, or the server shows only one run.
        """
        directory = await self._found(request)
        if directory is None or self._shown.only:
            return await self._unknown(request, UsageError(""))
        bar = web_pages.links(starts=self._may_start(request))
        async with self._drawing:
            page = await asyncio.to_thread(self._draw_trend, directory, bar)
        return page_response(page, policy=report_views.comparison_policy())

    def _draw_trend(self, directory: RunDirectory, bar: str) -> str:
        alike, archived = self._shown.alike(directory.path.name)
        return report_views.trend(self._shown.data_dir, directory, alike, archived, bar)

    async def abort(self, request: Request) -> Response:
        """Ask a run to end as Ctrl-C would; respond with 202 once it has taken the request.

        Status 404 if there is no such run, 409 if it is not running or does not take the request.
        """
        directory = await self._found(request)
        if directory is None:
            return PlainTextResponse("There is no such run.\n", 404)
        try:
            said = await asyncio.to_thread(control_requests.abort, directory)
        except OsbenchError as error:
            return PlainTextResponse(f"{error}\n", 409)
        return JSONResponse({"asked": directory.path.name, "said": said}, 202)

    async def control(self, request: Request) -> Response:
        """Ask a run to change its load, as the command `control` does, by the JSON body.

        Status 202 if it does so, 404 if there is no such run, 409 if the change is invalid or
        refused.
        """
        directory = await self._found(request)
        if directory is None:
            return PlainTextResponse("There is no such run.\n", 404)
        try:
            wanted = parse_change(await bounded_body(request))
            said = await asyncio.to_thread(control_requests.ask, directory, wanted)
        except OsbenchError as error:
            return PlainTextResponse(f"{error}\n", 409)
        return JSONResponse({"run": directory.path.name, "said": said}, 202)

    # parts

    def _may_start(self, request: Request) -> bool:
        return self._starts and request.scope["role"] is Role.ABORT

    async def static(self, request: Request) -> Response:
        """Respond with the style sheet or script of the URL; 404 for names not in `_KINDS`."""
        name = request.path_params["name"]
        if name not in _KINDS:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(web_pages.static(name), media_type=_KINDS[name])

    async def _found(self, request: Request) -> RunDirectory | None:
        return await asyncio.to_thread(self._shown.find, request.path_params["run"])

    def _stream(
        self, request: Request, key: str, build: Callable[[], Callable[[], dict[str, Any]]]
    ) -> Response:
        headers = {"X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            # nothing to wait for: a stream does not end
            return Response(media_type="text/event-stream", headers=headers)
        feed = self._feeds.get(key)
        if feed is None or feed.over:
            if len(self._feeds) >= _FEEDS:
                self._feeds = {name: one for name, one in self._feeds.items() if one.watchers}
            feed = self._feeds[key] = Feed(build())
        events: AsyncIterator[bytes] = feed.stream(request.headers.get("last-event-id", ""))
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _unknown(self, request: Request, error: Exception) -> Response:
        text = "There is no page at this address."
        return page_response(web_pages.message("Not found", text, to_list=True), 404)

    async def _refused(self, request: Request, error: Exception) -> Response:
        return page_response(
            web_pages.message("This cannot be shown", str(error), to_list=True), 409
        )


def _goes_on(directory: RunDirectory) -> bool:
    # in this order: a run that has its request is locked
    return directory.is_awaited or directory.has_coordinator()


def _changed_at(directory: RunDirectory) -> int:
    """Return the latest modification time of a run's files, ns; 0 if there are none."""
    latest = 0
    # files, and the run, may be deleted meanwhile
    with contextlib.suppress(FileNotFoundError):
        for file in directory.path.iterdir():
            with contextlib.suppress(FileNotFoundError):
                latest = max(latest, file.stat().st_mtime_ns)
    return latest
