"""The scenario `HttpFlow.run`: a sequence of HTTP requests that the task describes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from osbench.common.network.origins import is_http
from osbench.common.plugin import entry_points
from osbench.common.plugin.scenario import Scenario, VirtualUser, configure
from osbench.common.plugin.signature import near
from osbench.worker.http.user.request_base import REAUTHENTICATION, RETRY
from osbench.worker.scenarios.flow import flow_schema, placeholders
from osbench.worker.scenarios.flow.flow_checks import (
    RELOGIN,
    all_steps,
    mistakes,
    name_of,
    of_flow,
)
from osbench.worker.scenarios.flow.placeholders import FilledValues
from osbench.worker.scenarios.flow.saved_values import unsaved_names

if TYPE_CHECKING:
    from osbench.worker.scenarios.flow.flow_steps import Flow

#: Keys of the context and of the virtual user.
FLOW, SAVED = "flow", "flow_saved"


class HttpFlow(Scenario):
    """Scenario of a web user that makes `on_start` once, then steps in each iteration.

    All requests are described in the task, without code.
    """

    ARGUMENTS: ClassVar[Mapping[str, Mapping[str, Any]]] = {"run": flow_schema.ARGUMENTS}
    FILLED = frozenset({"{brace}"})
    WORKER_MODULES = (
        "osbench.worker.http.user.http_session",
        "osbench.worker.scenarios.flow.flow_steps",
    )

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for each mistake in the arguments; empty without mistakes.

        Looks at placeholders, saved values, base, headers, relogin, steps, mix and branch. Types
        are checked by the schema.
        """
        found = [
            f"{name} is not a placeholder: those are {{user.NAME}}, {{data.COLUMN}}, "
            f"{{saved.NAME}}, "
            "{iteration} and {run}; write {brace} for a brace that is to stay"
            for name in dict.fromkeys(placeholders.unknown_placeholders(dict(args)))
        ]
        steps = all_steps(args)
        branches = [_mappings(branch.get("steps")) for branch in _mappings(args.get("mix"))]
        lives = (_mappings(args.get(key)) for key in ("on_start", "steps", "on_stop"))
        on_start, always, on_stop = lives
        found += unsaved_names(on_start, always, branches, on_stop, args.get("headers"))
        found += of_flow(args)
        # a row of a data file has the branch without the mix
        if args.get("branch") and ("mix" in args or "steps" in args):
            found += cls.check_branches(method, args, (args["branch"],))
        found += dict.fromkeys(what for step in steps for what in mistakes(step))
        if _have_streams(steps):
            problems = entry_points.load_object("stream", "problems")
            found += dict.fromkeys(what for step in steps for what in problems(step))
        return found

    @classmethod
    def action_names(cls, method: str, args: Mapping[str, Any]) -> Collection[str] | None:
        """Return the names of actions: of steps, branches, events, and of repeated requests.

        Returns None without steps.
        """
        names = [name_of(step) for step in all_steps(args)]
        if not names:
            return None
        branches = [branch.get("name") for branch in _mappings(args.get("mix"))]
        if _have_streams(all_steps(args)):
            names += entry_points.load_object("stream", "actions")
        return [str(name) for name in (*names, *branches, RELOGIN, REAUTHENTICATION, RETRY)]

    @classmethod
    def check_without_base(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for the first path that needs a base, if the arguments have none.

        Called if the workload's key `http` has no base either. Empty if all paths are absolute URLs
        or begin with a placeholder.
        """
        if args.get("base"):
            return []
        paths = (step.get("path") for step in all_steps(args))
        return [
            f"{path!r} is below base, and there is none: give base, or http: {{base: ...}}"
            for path in paths
            if isinstance(path, str) and not (path.startswith("{") or is_http(path))
        ][:1]

    @classmethod
    def check_user_data(
        cls, method: str, args: Mapping[str, Any], columns: Collection[str]
    ) -> list[str]:
        """Return a message for each `{data.NAME}` without a column of that name.

        `columns` are the columns of the data file of users, empty without a file.
        """
        wanted = dict.fromkeys(placeholders.names_of("data", dict(args)))
        return [
            f"{{data.{name}}} is not a column of users.data{near(name, columns)}"
            if columns
            else f"{{data.{name}}} needs a data file: users: {{data: {{file: ...}}}}"
            for name in wanted
            if name not in columns
        ]

    @classmethod
    def check_branches(
        cls, method: str, args: Mapping[str, Any], names: Collection[str]
    ) -> list[str]:
        """Return a message if the mix lacks a branch of `names`, or is missing; else an empty list.

        The message shows the first missing name, and how many are missing.
        """
        known = [str(branch.get("name")) for branch in _mappings(args.get("mix"))]
        if not known:
            return ["branch names a branch of mix, and there is no mix"]
        missing = [name for name in names if name not in known]
        more = f" ({len(missing)} names are missing)" if len(missing) > 1 else ""
        return [
            f"mix has no branch {name!r}{near(name, known)}{more}: a file of arrivals asks for the"
            " names that branches had when it was made"
            for name in missing[:1]
        ]

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Compile the steps of the workload once per process, before the load, into `context`."""
        # the coordinator, which only checks arguments, needs no HTTP client
        from osbench.worker.scenarios.flow.flow_steps import Flow  # noqa: PLC0415 - see above

        context[FLOW] = Flow(context["args"])
        prepare_steps(all_steps(context["args"]))

    async def on_start(self) -> None:
        """Make the task's steps `on_start`, once per virtual user, before its iterations."""
        await self._flow.start(self, self._values())

    async def on_stop(self) -> None:
        """Make the task's steps `on_stop`, once per virtual user, after its iterations."""
        await self._flow.stop(self, self._values())

    @configure(name="HttpFlow.run")
    async def run(
        self,
        steps: Sequence[Mapping[str, Any]] = (),
        mix: Sequence[Mapping[str, Any]] = (),
        base: str = "",
        headers: Mapping[str, str] | None = None,
        relogin: Mapping[str, Any] | None = None,
        on_start: Sequence[Mapping[str, Any]] = (),
        on_stop: Sequence[Mapping[str, Any]] = (),
        branch: str = "",
    ) -> None:
        """Make the steps, then the steps of a branch of `mix`: `branch`, or drawn by weight.

        A step has a `path`, and may have `name`, `method`, `query`, `json`, `form`, `multipart`,
        `headers`, `expect`, `check`, `verify`, `save`, `relogin`, `think`, `when`, `repeat`,
        `stream` and `timeout`: {name: login, method: POST, path: /login, json: {name: ann}, save:
        {token: $.token}}. A branch has `name`, `weight` and `steps`.

        `base` comes before paths; the key `http` of the workload does the same. `on_start` and
        `on_stop` are made once per virtual user. `headers` go with all requests to `base`. With
        `relogin: {on: 401}` a user whose request gets this status makes the steps `on_start` once
        more, then the request. Texts may hold {user.number}, {data.COLUMN}, {saved.NAME},
        {iteration} and {run}; {brace} is a literal opening brace.
        """
        await self._flow.play(self, self._values(), branch)

    @property
    def _flow(self) -> Flow:
        flow: Flow = self.context[FLOW]
        return flow

    def _values(self) -> FilledValues:
        user, context = self.user, self.context
        kept = vars(user)
        if SAVED not in kept:
            kept[SAVED] = {}
            http = self.http
            if self._flow.base and not http.base.url:
                http.base = replace(http.base, url=self._flow.base)
        return _FlowValues(user, kept[SAVED], context)


class _FlowValues:
    """Values of placeholders; as most flows use few of them, each is made when it is asked for."""

    __slots__ = ("_context", "_saved", "_user")

    def __init__(
        self, user: VirtualUser, saved: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        self._user, self._saved, self._context = user, saved, context

    def __getitem__(self, kind: str) -> Mapping[str, Any]:
        match kind:
            case "saved":
                return self._saved
            case "data":
                return self._user.data
            case "user":
                return {"number": self._user.number}
        context = self._context
        return {"iteration": context["iteration"], "run": context["run"], "brace": "{"}


def prepare_steps(steps: Sequence[Mapping[str, Any]]) -> None:
    """Import and compile all that steps need: under load that would hold the event loop up."""
    for step in steps:
        # JSONPaths and patterns that were checked are kept compiled
        any(mistakes(step))
    if _have_streams(steps):
        entry_points.load_object("stream", "clients")


def _have_streams(steps: Sequence[Mapping[str, Any]]) -> bool:
    return any(isinstance(step.get("stream"), Mapping) for step in steps)


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of a list, without its other items; nothing if `value` is not a list."""
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, Mapping))
