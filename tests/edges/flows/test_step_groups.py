"""Groups of steps: made at once, each its own action, and ended together."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from osbench.common.plugin.scenario import VirtualUser
from osbench.common.secrets.hiding import HIDDEN
from osbench.edges.flows.group_checks import without_groups
from osbench.edges.flows.grouped_http_flow import GroupedHttpFlow
from osbench.edges.flows.step_groups import GroupedFlow, MemberFailed
from osbench.worker.engine.failures import resource_of
from osbench.worker.http import jsonpath
from osbench.worker.http.user.expectations import UnexpectedStatus
from osbench.worker.http.user.request_base import Base


class Site:
    """Answers by path: a document, or an error to raise; waits at the paths that a test holds."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.asked: list[str] = []
        self.wishes: list[dict[str, Any]] = []
        self.answers = answers or {}
        self.base = Base(url="http://site.example")
        #: Requests under way, and the most there were at once.
        self.running = self.most = 0
        self.ended: Counter[str] = Counter()
        #: Set by tests that let requests go on; a request to /wait... waits for it.
        self.go = asyncio.Event()
        #: How many requests to /wait... there have to be before any of them ends.
        self.together = 0

    def serve(self, scenario: Any) -> Site:
        return self

    async def request(self, method: str, path: str, **wishes: Any) -> Any:
        self.asked.append(path)
        self.wishes.append(wishes)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if path.startswith("/wait"):
                if self.running >= self.together > 0:
                    self.go.set()
                await self.go.wait()
            await asyncio.sleep(0)
        finally:
            self.running -= 1
            self.ended[path] += 1
        answer = self.answers.get(path, {})
        if callable(answer):
            answer = answer()
        if isinstance(answer, BaseException):
            raise answer
        return SimpleNamespace(json=lambda: answer, headers=CaseInsensitiveDict(), text="")


def flow(
    args: dict[str, Any], site: Site, user: VirtualUser | None = None
) -> tuple[GroupedHttpFlow, dict[str, Any]]:
    made = GroupedHttpFlow.__new__(GroupedHttpFlow)
    made._user = user or VirtualUser(3, {}, lambda _: site)
    made.context = {"iteration": 7, "run": "r", "flow": GroupedFlow(args), "args": args}
    saved: dict[str, Any] = {}
    made.user.flow_saved = saved  # type: ignore[attr-defined] # as the scenario keeps it
    return made, saved


def play(args: dict[str, Any], site: Site) -> dict[str, Any]:
    made, saved = flow(args, site)
    asyncio.run(made.run())
    return saved


def group(*members: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"steps": [{"name": "page", "parallel": list(members), **more}]}


def test_all_members_are_under_way_at_once() -> None:
    site = Site()
    site.together = 5

    # none of them ends before all have begun
    play(group(*({"path": f"/wait/{number}"} for number in range(5))), site)

    assert site.most == 5


def test_at_once_bounds_how_many_and_they_begin_in_order() -> None:
    site = Site()

    play(group(*({"path": f"/{number}"} for number in range(9)), at_once=2), site)

    assert site.most == 2
    assert site.asked == [f"/{number}" for number in range(9)]


def test_members_see_what_was_saved_before_and_steps_after_them_what_they_save() -> None:
    site = Site({"/first": {"x": 1}, "/a": {"x": 2}, "/b": {"y": 3}})
    args = group(
        {"path": "/a", "save": {"x": "$.x"}},
        {"path": "/b", "json": "{saved.x}", "save": {"y": "$.y"}},
    )
    args["steps"].insert(0, {"path": "/first", "save": {"x": "$.x"}})
    args["steps"].append({"path": "/last", "json": ["{saved.x}", "{saved.y}"]})

    play(args, site)

    asked = dict(zip(site.asked, site.wishes, strict=True))
    assert asked["/b"]["json"] == 1
    assert asked["/last"]["json"] == [2, 3]


def test_a_repeated_member_sees_what_it_saved_itself() -> None:
    site = Site({"/a/0": {"next": 1}, "/a/1": {"next": 2}, "/a/2": {"next": 3}})
    made, saved = flow(
        group({"path": "/a/{saved.next}", "repeat": 3, "save": {"next": "$.next"}}, {"path": "/b"}),
        site,
    )
    saved["next"] = 0

    asyncio.run(made.run())

    assert [path for path in site.asked if path != "/b"] == ["/a/0", "/a/1", "/a/2"]
    assert saved["next"] == 3


def test_when_and_repeat_work_for_members_and_for_the_group() -> None:
    site = Site()
    args = group(
        {"path": "/a", "when": "{saved.no}"}, {"path": "/b", "repeat": "{saved.two}"}, repeat=2
    )
    args["steps"].append({"name": "never", "parallel": [{"path": "/c"}], "when": "{saved.no}"})
    made, saved = flow(args, site)
    saved.update(no=0, two=2)

    asyncio.run(made.run())

    assert site.asked == ["/b"] * 4


def test_the_group_thinks_after_all_of_its_members() -> None:
    site = Site()
    made, _ = flow(group({"path": "/a"}, {"path": "/b"}, think=0), site)
    thought: list[int] = []

    async def think(low: float, high: float) -> None:
        thought.append(len(site.ended))

    made.think = think  # type: ignore[method-assign]
    asyncio.run(made.run())

    assert thought == [2]


def test_the_first_failure_by_order_is_raised_once_all_have_ended() -> None:
    site = Site({"/b": UnexpectedStatus("b", 503, "less than 400"), "/d": ValueError("odd")})
    made, saved = flow(
        group(
            {"path": "/wait/a", "save": {"a": "$"}},
            {"name": "b", "path": "/b"},
            {"path": "/c", "save": {"c": "$"}},
            {"path": "/d"},
        ),
        site,
    )
    site.together = 0

    async def run() -> None:
        work = asyncio.create_task(made.run())
        while site.ended.total() < 3:
            await asyncio.sleep(0)
        # one of them goes on
        assert not work.done()
        site.go.set()
        await work

    with pytest.raises(UnexpectedStatus) as raised:
        asyncio.run(run())

    assert str(raised.value) == (
        "page > b answered 503, expected less than 400 (2 of 4 steps at once failed)"
    )
    assert raised.value.status == 503
    assert site.running == 0
    # of those that went well
    assert saved == {"a": {}, "c": {}}


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            ConnectionError("GET http://x/: cannot connect"),
            ConnectionError,
            "page > GET /a: GET http://x/: cannot connect (1 of 1 steps at once failed)",
        ),
        (
            OSError(24, "Too many open files"),
            MemberFailed,
            "page > GET /a: [Errno 24] Too many open files (1 of 1 steps at once failed)",
        ),
        (KeyError("x"), MemberFailed, "page > GET /a: 'x' (1 of 1 steps at once failed)"),
    ],
)
def test_each_kind_of_error_names_its_member(error, kind, said) -> None:
    with pytest.raises(kind) as raised:
        play(group({"path": "/a"}), Site({"/a": error}))

    assert type(raised.value) is kind
    assert str(raised.value) == said
    assert raised.value is error or raised.value.__cause__ is error


def test_a_lack_of_the_generator_s_own_resources_is_raised_before_other_errors() -> None:
    lack = ConnectionError("GET http://x/: cannot connect to x:80: Too many open files")
    site = Site({"/a": UnexpectedStatus("a", 503, "less than 400"), "/b": lack})

    with pytest.raises(ConnectionError) as raised:
        play(group({"path": "/a"}, {"path": "/b"}), site)

    assert resource_of(raised.value) == "open files"
    assert str(raised.value).endswith("(2 of 2 steps at once failed)")


def test_secrets_that_members_save_stay_hidden_in_what_the_iteration_reports() -> None:
    site = Site({"/a": {"token": "s3cret-of-a-user"}, "/b": ValueError("no")})
    made, _ = flow(group({"path": "/a", "save": {"token": "$.token"}}, {"path": "/b"}), site)

    async def run() -> str:
        with pytest.raises(ValueError, match="page > GET /b: no"):
            await made.run()
        hide = HIDDEN.get()
        assert hide is not None
        return hide("it said s3cret-of-a-user")

    assert "s3cret" not in asyncio.run(run())


def test_a_cancelled_group_cancels_its_members_and_awaits_them() -> None:
    site = Site()

    async def run() -> None:
        made, _ = flow(group(*({"path": f"/wait/{number}"} for number in range(3))), site)
        work = asyncio.create_task(made.run())
        while site.running < 3:
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert site.running == 0
        # no task is left that nobody awaits
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


# logging in again


def refused() -> UnexpectedStatus:
    return UnexpectedStatus("x", 401, "less than 400")


class Guarded(Site):
    """Takes the newest token alone; a login gives the next."""

    def __init__(self, *, login_fails: bool = False) -> None:
        super().__init__()
        self.tokens = 1
        self.logins = 0
        self._fails = login_fails

    async def request(self, method: str, path: str, **wishes: Any) -> Any:
        if path == "/login":
            self.logins += 1
            await asyncio.sleep(0)
            if self._fails:
                raise ValueError("login refused")
            self.tokens += 1
            return SimpleNamespace(json=lambda: {"token": self.tokens}, headers={}, text="")
        await super().request(method, path, **wishes)
        if wishes["headers"]["X-Token"] != str(self.tokens):
            raise refused()
        return SimpleNamespace(json=lambda: {"at": path}, headers={}, text="")


LOGIN = {
    "base": "http://site.example",
    "headers": {"X-Token": "{saved.token}"},
    "relogin": {"on": 401},
    "on_start": [{"path": "/login", "save": {"token": "$.token"}}],
}


def test_members_that_are_refused_at_once_log_in_once() -> None:
    site = Guarded()
    members = [{"path": f"/{name}", "save": {name: "$.at"}} for name in "abc"]
    made, saved = flow({**LOGIN, **group(*members, {"path": "/d", "repeat": 2})}, site)
    saved["token"] = 0

    asyncio.run(made.run())

    assert site.logins == 1
    assert Counter(site.asked) == {"/a": 2, "/b": 2, "/c": 2, "/d": 3}
    assert saved == {"token": 2, "a": "/a", "b": "/b", "c": "/c"}


def test_a_login_that_fails_is_made_once_and_fails_all_that_need_it() -> None:
    site = Guarded(login_fails=True)
    made, saved = flow({**LOGIN, **group({"path": "/a"}, {"path": "/b"})}, site)
    saved["token"] = 0

    with pytest.raises(ValueError, match=r"page > GET /a: login refused \(2 of 2 steps at once"):
        asyncio.run(made.run())

    assert site.logins == 1
    assert saved == {"token": 0}


def test_a_group_may_log_in_and_its_values_are_forgotten_before_the_next_login() -> None:
    site = Site({"/one": {"t": 1}, "/two": {"t": 2}})
    args = {
        "on_start": group({"path": "/one", "save": {"a": "$.t"}}, {"path": "/two"})["steps"],
        "steps": [{"path": "/x", "json": "{saved.a}"}],
    }
    made, saved = flow(args, site)

    asyncio.run(made.on_start())

    assert saved == {"a": 1}
    assert [step.save for step in GroupedFlow(args)._on_start] == [{"a": "$.t"}]


# the task


def checked(*steps: dict[str, Any], **more: Any) -> list[str]:
    args = {"base": "http://site.example", "steps": list(steps), **more}
    return GroupedHttpFlow.check_arguments("run", args)


def test_a_group_without_mistakes_has_none() -> None:
    first = {"path": "/", "save": {"x": "$.x"}}
    page = {
        "name": "page",
        "parallel": [{"path": "/{saved.x}", "save": {"y": "$.y"}}],
        "at_once": 6,
    }

    assert checked(first, page, {"path": "/{saved.y}"}) == []
    assert checked(first, mix=[{"name": "a", "steps": [page, {"path": "/{saved.y}"}]}]) == []


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (
            [{"path": "/a", "save": {"x": "$.x"}}, {"name": "b", "path": "/{saved.x}"}],
            "{saved.x} is not saved by any step before 'b', which uses it",
        ),
        (
            [{"path": "/a", "save": {"x": "$.x"}}, {"path": "/b", "save": {"x": "$.y"}}],
            "2 steps of 'page' save 'x' at once: give each its own name",
        ),
        ([{"path": "/a", "save": {"x": "$["}}], "$["),
        ([{"path": "/{dta.name}"}], "{dta.name} is not a placeholder"),
        ([{"method": "QUERY", "path": "/a"}], "the body of a QUERY is the query"),
    ],
)
def test_mistakes_in_members_are_found(members, said) -> None:
    (found,) = checked({"name": "page", "parallel": members})

    assert said in found


def test_names_of_groups_and_members_are_actions_and_their_paths_need_a_base() -> None:
    args = group({"path": "/a"}, {"name": "b", "path": "/b"})

    assert set(GroupedHttpFlow.action_names("run", args) or ()) >= {"page", "GET /a", "b"}
    assert "'/a' is below base" in GroupedHttpFlow.check_without_base("run", args)[0]


@pytest.mark.parametrize(
    "args",
    [
        {"steps": 5},
        {"steps": [{"parallel": 5}]},
        {"steps": [{"parallel": [5, None, {"path": 5}]}]},
    ],
)
def test_values_of_wrong_types_are_left_to_the_schema(args) -> None:
    GroupedHttpFlow.check_arguments("run", args)

    assert isinstance(without_groups(args), dict)


def test_the_description_names_every_key_of_a_group() -> None:
    described = GroupedHttpFlow.run.__doc__ or ""

    for key in ("parallel", "at_once", "when", "repeat", "think", "path"):
        assert f"`{key}`" in described


def test_paths_of_all_steps_are_compiled_before_the_load() -> None:
    member = {"name": "a", "path": "/a", "save": {"one": "$..early", "two": "regex early=(x+)"}}
    steps = [{"path": "/", "check": {"$.first": 1}}, {"name": "page", "parallel": [member]}]
    jsonpath.compiled_query.cache_clear()

    GroupedHttpFlow.warm_up({"args": {"steps": steps}})

    before = jsonpath.compiled_query.cache_info().misses
    assert before == 2
    jsonpath.compiled_query("$..early")
    jsonpath.compiled_query("$.first")
    assert jsonpath.compiled_query.cache_info().misses == before
