"""Flows of a task: placeholders, steps, branches, and what is refused before a run."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from requests.structures import CaseInsensitiveDict

from osbench.common.plugin.scenario import VirtualUser
from osbench.worker.scenarios.flow import flow_schema
from osbench.worker.scenarios.flow.flow_steps import Flow, NothingToSave
from osbench.worker.scenarios.flow.placeholders import (
    MissingValue,
    filler,
    names_of,
    unknown_placeholders,
)
from osbench.worker.scenarios.http_flow import HttpFlow

VALUES = {
    "user": {"number": 3},
    "data": {"name": "ann", "age": 31},
    "saved": {"token": "t", "list": [1, 2]},
    "iteration": {"iteration": 7, "run": "r", "brace": "{"},
}


def test_the_description_names_every_key_of_a_step() -> None:
    described = inspect.getdoc(HttpFlow.run) or ""

    assert [key for key in flow_schema.STEP["properties"] if f"`{key}`" not in described] == []


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("/items/{iteration}", "/items/7"),
        ("{data.age}", 31),
        ("{saved.list}", [1, 2]),
        ("{user.number}-{run}-{data.name}", "3-r-ann"),
        (
            {"a": ["{saved.token}", 1, {"b": "{iteration}"}], "c": 2},
            {"a": ["t", 1, {"b": 7}], "c": 2},
        ),
        ("query{brace}items{brace}id}}", "query{items{id}}"),
        ("{unknown} {} {{x}}", "{unknown} {} {{x}}"),
        (5, 5),
    ],
)
def test_placeholders_are_filled_in(value, filled):
    assert filler(value)(VALUES) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{saved.absent}", "no step has saved it"),
        ("x {data.absent}", "has no such column"),
        ("{user.name}", "it has number"),
    ],
)
def test_a_value_that_is_not_there_is_named(text, said):
    with pytest.raises(MissingValue, match=said):
        filler(text)(VALUES)


def test_placeholders_that_are_none_are_found():
    value = {"a": ["{user}", "{dta.name}", "{iteration}"], "{itration}": 1, "json": "{a b} {1}"}

    assert sorted(unknown_placeholders(value)) == ["{dta.name}", "{itration}", "{user}"]
    assert list(names_of("saved", {"x": ["{saved.a}", {"y": "{saved.b}/{saved.a}"}]})) == [
        "a",
        "b",
        "a",
    ]


class Requests:
    """Notes what a flow asks for, and answers with what it is told to."""

    def __init__(self, *documents: Any) -> None:
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self._documents = list(documents)
        self.base = SimpleNamespace(url="x")

    def serve(self, scenario: Any) -> Requests:
        return self

    async def request(self, method: str, path: str, **wishes: Any) -> Any:
        self.asked.append((method, path, wishes))
        document = self._documents.pop(0) if self._documents else {}
        return SimpleNamespace(json=lambda: document, headers=CaseInsensitiveDict(location="/here"))


def flow(args: dict[str, Any], requests: Requests, user: VirtualUser | None = None) -> HttpFlow:
    made = HttpFlow.__new__(HttpFlow)
    made._user = user or VirtualUser(3, {"name": "ann"}, lambda _: requests)
    made.context = {"iteration": 7, "run": "r", "flow": Flow(args), "args": args}
    return made


def play(args: dict[str, Any], requests: Requests, method: str = "run", **more: Any) -> None:
    asyncio.run(getattr(flow(args, requests, **more), method)())


def test_steps_are_made_in_order_with_what_earlier_ones_saved():
    requests = Requests({"token": "t", "items": [{"id": 5}]}, {})
    args = {
        "steps": [
            {
                "method": "POST",
                "path": "/login",
                "json": {"name": "{data.name}"},
                "save": {"token": "$.token", "item": "$.items[0].id", "at": "header Location"},
            },
            {
                "name": "look",
                "path": "/item/{saved.item}",
                "query": {"n": "{iteration}"},
                "headers": {"X-Token": "{saved.token}"},
                "expect": [200, 404],
                "check": {"$.at": "{saved.at}"},
            },
        ]
    }

    play(args, requests)

    first, second = requests.asked
    assert first == ("POST", "/login", {"json": {"name": "ann"}, "name": "POST /login"})
    assert second == (
        "GET",
        "/item/5",
        {
            "params": {"n": "7"},
            "headers": {"X-Token": "t"},
            "expect": [200, 404],
            "check": {"$.at": "/here"},
            "name": "look",
        },
    )


def test_what_is_saved_stays_with_the_virtual_user():
    requests = Requests({"token": "t"})
    user = VirtualUser(1, {}, lambda _: requests)
    args = {"on_start": [{"path": "/login", "save": {"token": "$.token"}}]}
    args["steps"] = [{"path": "/x/{saved.token}"}]

    play(args, requests, "on_start", user=user)
    play(args, requests, user=user)
    play(args, requests, user=user)

    assert [path for _, path, _ in requests.asked] == ["/login", "/x/t", "/x/t"]
    other = VirtualUser(2, {}, lambda _: requests)
    with pytest.raises(MissingValue):
        play(args, requests, user=other)


@pytest.mark.parametrize(
    ("when", "made"), [("{saved.more}", 1), ("{saved.none}", 0), ("0", 0), ("false", 0), ("yes", 1)]
)
def test_a_step_may_depend_on_a_value_and_be_repeated(when, made):
    requests = Requests({"more": True, "none": None, "times": 3})
    saves = {"more": "$.more", "none": "$.none", "times": "$.times"}
    args = {
        "steps": [
            {"path": "/a", "save": saves},
            {"path": "/b", "when": when, "repeat": "{saved.times}"},
        ]
    }

    play(args, requests)

    assert [path for _, path, _ in requests.asked] == ["/a", *["/b"] * (3 * made)]


def test_paths_and_headers_are_texts_whatever_a_placeholder_has():
    requests = Requests({"at": 5})
    headers = {"X-User": "{user.number}", "X-Fixed": "a"}
    args = {
        "steps": [
            {"path": "/a", "save": {"at": "$.at"}},
            {"path": "{saved.at}", "headers": headers},
        ]
    }

    play(args, requests)

    assert requests.asked[1][:2] == ("GET", "5")
    assert requests.asked[1][2]["headers"] == {"X-User": "3", "X-Fixed": "a"}


def test_values_of_a_task_are_written_as_in_the_task():
    values = {"yes": True, "no": False, "none": None, "n": 1.5, "list": [True, "a", None]}
    written = {"yes": "true", "no": "false", "none": None, "n": "1.5", "list": ["true", "a", None]}
    requests = Requests({"on": True, "of": {"a": [1]}, "none": None})
    args = {
        "steps": [
            {"path": "/a", "save": {"on": "$.on", "of": "$.of", "none": "$.none"}},
            {"path": "/b", "query": values, "headers": {"X-On": "{saved.on}"}},
            {"path": "/{saved.on}/{saved.none}", "form": values, "query": {"q": "{saved.on}"}},
            {"path": "/c", "json": values, "query": {"of": "{saved.of}", "text": "is {saved.of}"}},
        ]
    }

    play(args, requests)

    _, second, third, fourth = requests.asked
    assert second[2]["params"] == written
    assert second[2]["headers"] == {"X-On": "true"}
    assert third[1] == "/true/null"
    assert (third[2]["data"], third[2]["params"]) == (written, {"q": "true"})
    assert fourth[2]["json"] == values
    assert fourth[2]["params"] == {"of": '{"a": [1]}', "text": 'is {"a": [1]}'}


def test_an_action_is_named_by_the_path_as_the_task_writes_it():
    paths = [
        "/user-{iteration}/x?q={iteration}",
        "/user/{data.name}",
        "/reset/{saved.token}",
        "/9/y",
    ]
    names = ["GET /user-{iteration}/x", "GET /user/{data.name}", "GET /reset/{saved.token}"]
    first = {"path": "/", "save": {"token": "$.token"}, "name": "start"}
    args = {"steps": [first, *({"path": path} for path in paths)]}
    requests = Requests({"token": "Zk3JhQ9vXw2LmN8pT4yB"})
    user = VirtualUser(3, {"name": "ann@shop.test"}, lambda _: requests)

    play(args, requests, user=user)

    assert [wishes["name"] for _, _, wishes in requests.asked] == ["start", *names, "GET /[id]/y"]
    assert requests.asked[2][1] == "/user/ann@shop.test"
    assert set(names) < set(HttpFlow.action_names("run", args) or ())


@pytest.mark.parametrize("times", [-1, "many", None, [1], float("inf")])
def test_a_value_that_is_no_number_of_times_fails_the_iteration(times):
    args = {
        "steps": [
            {"path": "/a", "save": {"n": "$.n"}},
            {"path": "/b", "repeat": "{saved.n}"},
        ]
    }

    with pytest.raises(ValueError, match=r"GET /b: repeat must be an integer from 0, got "):
        play(args, Requests({"n": times}))


def test_a_branch_that_is_named_is_made():
    requests = Requests()
    mix = [{"name": name, "steps": [{"path": f"/{name}"}]} for name in ("look", "buy")]
    made = flow({"mix": mix}, requests)

    async def some() -> None:
        for name in ("buy", "buy", "look"):
            await made.run(branch=name)

    asyncio.run(some())

    assert [path for _, path, _ in requests.asked] == ["/buy", "/buy", "/look"]
    assert set(made._recorder.names.names) == {"look", "buy"}


@pytest.mark.parametrize(("step", "around"), [("look", []), ("list", ["look"])])
def test_a_branch_of_one_step_of_its_name_has_no_action_around_it(step, around):
    mix = [{"name": "look", "steps": [{"name": step, "path": "/a"}]}]
    made = flow({"mix": mix}, Requests())

    asyncio.run(made.run())

    assert made._recorder.names.names == around


def test_branches_are_drawn_by_their_weights():
    requests = Requests()
    args = {
        "mix": [
            {"name": "look", "weight": 3, "steps": [{"path": "/look"}]},
            {"name": "buy", "steps": [{"path": "/buy"}]},
        ]
    }
    made = flow(args, requests)

    async def many() -> None:
        for _ in range(2000):
            await made.run()

    asyncio.run(many())

    counts = Counter(path for _, path, _ in requests.asked)
    assert 0.65 < counts["/look"] / 2000 < 0.85
    assert counts["/look"] + counts["/buy"] == 2000
    assert set(made._recorder.names.names) == {"look", "buy"}


@pytest.mark.parametrize(
    ("document", "said"), [({}, r"no value at \$\.token"), (None, r"no value at \$\.token")]
)
def test_what_cannot_be_saved_fails_the_iteration(document, said):
    with pytest.raises(NothingToSave, match=said):
        play({"steps": [{"name": "s", "path": "/", "save": {"t": "$.token"}}]}, Requests(document))


#: Sound steps: one that does nothing, one that saves, one that uses what that saved.
STEP, SAVE, USE = {"path": "/"}, {"path": "/", "save": {"a": "$.a"}}, {"path": "/{saved.a}"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"steps": [{"path": "/{user}"}]}, "{user} is not a placeholder"),
        ({"steps": [{"path": "/{saved.tokn}"}]}, "{saved.tokn} is not saved by any step"),
        ({"steps": [{"path": "/", "check": {"$.a[": 1}}]}, "cannot be read"),
        ({"steps": [{"path": "/", "verify": {"status": 200}}]}, "neither a JSONPath"),
        ({"mix": [{"name": "x", "steps": [{"path": "/", "save": {"a": "$["}}]}]}, "cannot be read"),
        ({"steps": [{"path": "/", "repeat": "abc"}]}, "repeat is an integer or one"),
        ({"steps": [{"path": "/", "repeat": "-1"}]}, "repeat is an integer or one"),
        ({"steps": [{"path": "/", "when": "{data.a} == 1"}]}, "it is always true"),
        ({"steps": [{"path": "/", "json": {}, "form": {"a": 1}}]}, "a request has one body"),
        ({"steps": [{"path": "/", "think": {"min": 5, "max": 1}}]}, "less than its min: 1 and 5"),
        ({"steps": [{"path": "/", "name": "look at {data.a}"}]}, "the same for all requests"),
        ({"steps": [{"path": "ftp://x/{data.a}"}]}, "not 'ftp://x/{data.a}'"),
        ({"steps": [{"path": "/", "json": [{"{data.a}": 1}]}]}, "not in names"),
        ({"steps": [{"path": "/{user.name}"}]}, "a virtual user has no {user.name}"),
        ({"on_stop": [{"path": "/", "stream": True, "save": {"a": "$.a"}}]}, "body is not kept"),
        ({"steps": []}, "no steps"),
        ({"on_start": [{"path": "/"}], "steps": []}, "no steps"),
        ({"base": "http://x:port", "steps": [STEP]}, "host or port cannot be read"),
        ({"base": "http://a b", "steps": [STEP]}, "its host is missing or invalid"),
        ({"base": "http://x/?a=1", "steps": [STEP]}, "has no query"),
        ({"base": "http://x/{data.a}", "steps": [STEP]}, "base is the same for all requests"),
        ({"steps": [{"path": "http://x:99999/"}]}, "host or port cannot be read"),
        ({"steps": [{"path": "http://"}]}, "its host is missing or invalid"),
        ({"steps": [{"path": "/", "headers": {"X A": "b"}}]}, "'X A' is not a header name"),
        ({"steps": [{"path": "/", "headers": {"X": "a\nb"}}]}, "the header X holds '\\n'"),
        ({"steps": [{"path": "/", "headers": {"X": "日"}}]}, "the header X holds '日'"),
        ({"steps": [{"path": "/", "check": {"header ": "x"}}]}, "names no header"),
        ({"steps": [{"path": "/", "save": {"a": "header X Y"}}]}, "names no header"),
        ({"steps": [{"path": "/", "check": {"header Age": 3}}]}, "of 'header Age' in quotes"),
        ({"steps": [{"path": "/", "method": "HEAD", "check": {"text": "a"}}]}, "HEAD has no body"),
        ({"steps": [{"path": "/", "save": {"a b": "$.a"}}]}, "{saved.a b} cannot be filled in"),
        ({"mix": [{"name": n, "weight": 1e308, "steps": [STEP]} for n in "ab"]}, "too large"),
    ],
)
def test_mistakes_are_told_before_the_run(args, said):
    (message,) = HttpFlow.check_arguments("run", {"steps": [STEP], **args})

    assert said in message


def test_a_branch_has_a_name_of_a_letter_or_more():
    schema = jsonschema.Draft202012Validator(flow_schema.ARGUMENTS)

    assert schema.is_valid({"mix": [{"name": "x", "steps": [STEP]}]})
    assert not schema.is_valid({"mix": [{"name": "", "steps": [STEP]}]})


def test_a_sound_flow_has_no_mistakes():
    args = {
        "on_start": [{"path": "/login", "save": {"t": "$.t"}}],
        "steps": [
            {"path": "/{saved.t}", "check": {"text": "x", "header a": "b"}},
            {"path": "http://x/{iteration}", "repeat": "{data.n}", "when": "{saved.t}"},
            {"path": "/", "json": {"a{b": "{user.number}"}, "think": 1, "repeat": "2"},
            {"path": "/", "stream": True, "check": {"header a": "b"}},
        ],
    }

    assert HttpFlow.check_arguments("run", args) == []
    assert inspect.iscoroutinefunction(HttpFlow.run)


@pytest.mark.parametrize(
    "args",
    [
        {"steps": [USE, SAVE]},
        {"steps": [{**SAVE, **USE}]},
        {"steps": [{**SAVE, "when": "{saved.a}"}]},
        {"on_start": [USE], "steps": [SAVE]},
        {"steps": [USE], "on_stop": [SAVE]},
        {"steps": [STEP], "on_stop": [USE, SAVE]},
        {"mix": [{"name": "x", "steps": [USE]}], "on_stop": [SAVE]},
    ],
)
def test_a_value_that_no_step_can_have_saved_yet_is_named(args):
    (message,) = HttpFlow.check_arguments("run", args)

    assert message.startswith("{saved.a} is not saved by any step before '/")


def test_a_step_that_is_never_made_saves_nothing():
    (message,) = HttpFlow.check_arguments("run", {"steps": [{**SAVE, "repeat": 0}, USE]})

    assert message == "{saved.a} is not saved by any step"


@pytest.mark.parametrize(
    "args",
    [
        {"steps": [SAVE, USE]},
        {"on_start": [SAVE], "steps": [USE]},
        {"on_start": [SAVE], "steps": [STEP], "on_stop": [USE]},
        {"steps": [SAVE], "on_stop": [USE]},
        {"steps": [SAVE], "mix": [{"name": "x", "steps": [USE]}]},
        {"mix": [{"name": "x", "steps": [SAVE, USE]}]},
        # a virtual user keeps it from an earlier iteration
        {"mix": [{"name": "x", "steps": [SAVE]}, {"name": "y", "steps": [USE]}]},
        # a part of the arguments, as a row of a data file gives it
        {"base": "http://x"},
    ],
)
def test_a_value_that_a_step_may_have_saved_is_used(args):
    assert HttpFlow.check_arguments("run", args) == []


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ({"steps": [STEP]}, 1),
        ({"on_start": [STEP], "steps": [{"path": "http://x/"}]}, 1),
        ({"base": "http://x", "steps": [STEP]}, 0),
        ({"steps": [{"path": "https://x/a"}, {"path": "{data.url}"}]}, 0),
    ],
)
def test_paths_need_a_base(args, count):
    assert len(HttpFlow.check_without_base("run", args)) == count


def test_a_branch_that_is_named_is_one_of_the_mix():
    mix = [{"name": name, "steps": [{"path": "/"}]} for name in ("GET /a", "GET /b")]

    sound = HttpFlow.check_arguments("run", {"mix": mix, "branch": "GET /b"})
    other = HttpFlow.check_arguments("run", {"mix": mix, "branch": "GET /A"})
    without = HttpFlow.check_arguments("run", {"steps": mix[0]["steps"], "branch": "GET /a"})
    of_file = HttpFlow.check_branches("run", {"mix": mix}, ("GET /a", "x", "y"))

    assert sound == []
    assert other[0].startswith("mix has no branch 'GET /A'")
    assert without == ["branch names a branch of mix, and there is no mix"]
    assert of_file[0].startswith("mix has no branch 'x'")
    assert "(2 names are missing)" in of_file[0]
