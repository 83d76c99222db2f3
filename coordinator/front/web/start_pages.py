"""The web server's pages and requests for starting runs from the browser."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.front.web import web_pages
from osbench.coordinator.front.web.access_tokens import AccessTokens, Role
from osbench.coordinator.front.web.bodies import bounded_body, page_response
from osbench.coordinator.front.web.run_starts import RunStarts, StartRequest
from osbench.coordinator.front.web.runs_shown import RunsShown


class StartPages:
    """The routes for starting runs from the browser; a read-only token can start and stop none."""

    def __init__(self, starts: RunStarts, shown: RunsShown, tokens: AccessTokens) -> None:
        self._starts = starts
        self._shown = shown
        self._tokens = tokens
        #: One check or start at a time.
        self._one = asyncio.Lock()
        self.routes = (
            Route("/start", self.start, methods=["GET", "POST"]),
            Route("/start/check", self.check, methods=["POST"]),
            Route("/starts/{run}", self.starting),
            Route("/starts/{run}/state", self.start_state),
            Route("/starts/{run}/stop", self.stop_start, methods=["POST"]),
        )

    async def start(self, request: Request) -> Response:
        """Respond to GET with the page of tasks that can be started; start a run on POST.

        GET: status 403 for a read-only token. POST: 202 with run id and page, 422 with the task's
        problems, or 400, 404, 409 with the reason why it is refused.
        """
        if request.method == "POST":
            return await self._start(request)
        if not _may_start(request):
            text = "This token only reads: it starts no runs."
            return page_response(web_pages.message("Start a run", text, to_list=True), 403)
        again = self._shown.here(request.query_params.get("again", ""))
        asked = await asyncio.to_thread(again.read, "run.json") if again is not None else None
        page = web_pages.render(
            "start.html.j2",
            title="Start a run",
            live=False,
            key=self._tokens.abort_key,
            again=again.path.name if again is not None and asked is not None else "",
            task=str((asked or {}).get("task", "")),
            tasks=await asyncio.to_thread(self._starts.tasks.names),
            folder=str(self._starts.tasks.path),
        )
        return page_response(page)

    async def _start(self, request: Request) -> Response:
        try:
            wanted = StartRequest.read(await bounded_body(request))
        except UsageError as error:
            return PlainTextResponse(f"{error}\n", 400)
        if wanted.again and self._shown.here(wanted.again) is None:
            return PlainTextResponse("There is no such run.\n", 404)
        async with self._one:
            try:
                if wanted.task:
                    checked = await asyncio.to_thread(self._starts.tasks.check, wanted.task)
                    if not checked.ok:
                        return JSONResponse(checked.to_json(), 422)
                run_id = await asyncio.to_thread(self._starts.start, wanted)
            except OsbenchError as error:
                return PlainTextResponse(f"{error}\n", 409)
        return JSONResponse({"run": run_id, "page": f"/starts/{run_id}"}, 202)

    async def check(self, request: Request) -> Response:
        """Check the task file that the body names, and respond with the result as JSON.

        Status 400 if the request names no task file, 404 if there is no such file.
        """
        try:
            wanted = StartRequest.read(await bounded_body(request))
        except UsageError as error:
            return PlainTextResponse(f"{error}\n", 400)
        if not wanted.task:
            text = 'the request names no task file to check: write {"task": FILE}\n'
            return PlainTextResponse(text, 400)
        async with self._one:
            try:
                checked = await asyncio.to_thread(self._starts.tasks.check, wanted.task)
            except OsbenchError as error:
                return PlainTextResponse(f"{error}\n", 404)
        return JSONResponse(checked.to_json())

    async def starting(self, request: Request) -> Response:
        """Respond with the page of a run that is starting, or that did not begin.

        Redirects to the page of a run that has begun, or was started elsewhere. Status 404 for an
        unknown run.
        """
        name = request.path_params["run"]
        found = await asyncio.to_thread(self._starts.state, name)
        if found is None and self._shown.here(name) is None:
            raise HTTPException(404)
        if found is None or found.state == "begun":
            return RedirectResponse(f"/runs/{name}", 303)
        page = web_pages.render(
            "starting.html.j2",
            title="The run did not begin" if found.state == "ended" else "Starting a run",
            live=False,
            run=name,
            key=self._tokens.abort_key if _may_start(request) else "",
            found=found,
        )
        return page_response(page)

    async def start_state(self, request: Request) -> Response:
        """Respond with the `StartState` of a start as JSON, for the page's script."""
        found = await asyncio.to_thread(self._starts.state, request.path_params["run"])
        if found is None:
            return PlainTextResponse("There is no such start.\n", 404)
        return JSONResponse(found.to_json())

    async def stop_start(self, request: Request) -> Response:
        """Interrupt a run that has not begun; respond with 202 and its id.

        Status 404 for an unknown start, 409 if the run has begun or ended.
        """
        name = request.path_params["run"]
        if self._starts.state(name) is None:
            return PlainTextResponse("There is no such start.\n", 404)
        try:
            self._starts.stop(name)
        except OsbenchError as error:
            return PlainTextResponse(f"{error}\n", 409)
        return JSONResponse({"asked": name}, 202)


def _may_start(request: Request) -> bool:
    return request.scope["role"] is Role.ABORT
