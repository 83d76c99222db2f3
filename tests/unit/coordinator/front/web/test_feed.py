"""The stream of documents: built once for all, the newest for those who are slow."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.front.web import feed
from osbench.coordinator.front.web.feed import Feed, apply_change, change

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "<b>"]),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=20,
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PERIOD_S", 0.01)
    monkeypatch.setattr(feed, "SHARE", 100.0)


class Counting:
    """Documents with a number that grows; counts how many were built."""

    def __init__(self, end: int = 1 << 30) -> None:
        self.built = 0
        self._end = end

    def __call__(self) -> dict[str, Any]:
        self.built += 1
        return {"n": [*range(self.built)], "over": self.built >= self._end}


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


async def documents(stream: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """What a page makes of the events of a stream."""
    document: Any = None
    async for event in stream:
        for line in event.decode().splitlines():
            if line.startswith("data: "):
                document = apply_change(document, json.loads(line[6:]))
                yield document


def test_each_document_follows_the_one_before_until_the_last() -> None:
    async def main() -> None:
        found = [one["n"][-1] async for one in documents(Feed(Counting(end=4)).stream())]

        assert found == [0, 1, 2, 3]

    run(main)


def test_a_document_is_built_once_for_all() -> None:
    async def main() -> None:
        build = Counting(end=5)
        one = Feed(build)

        async def watch() -> dict[str, Any]:
            *_, last = [found async for found in documents(one.stream())]
            return last

        last = await asyncio.gather(*(watch() for _ in range(20)))

        # a browser that comes when all is over costs another one; one each would be 100
        assert 5 <= build.built < 20
        assert all(found["n"][:5] == [0, 1, 2, 3, 4] for found in last)
        assert one.watchers == 0

    run(main)


def test_who_is_slow_gets_the_newest_and_no_queue() -> None:
    async def main() -> None:
        build = Counting()
        slow = documents(Feed(build).stream())
        first = await anext(slow)
        while build.built < first["n"][-1] + 20:
            await asyncio.sleep(0.01)
        second = await anext(slow)
        await slow.aclose()  # type: ignore[attr-defined]

        assert second["n"][-1] >= 15
        assert second["n"] == [*range(len(second["n"]))]

    run(main)


def test_nothing_is_built_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "GRACE_S", 0.0)

    async def main() -> None:
        build = Counting()
        one = Feed(build)
        stream = one.stream()
        await anext(stream)
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        while one.at_work:
            await asyncio.sleep(0.01)
        built = build.built
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert build.built == built

        # and again for the next
        assert await anext(documents(one.stream()))

    run(main)


def test_what_stays_the_same_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "QUIET_S", 0.05)

    async def main() -> None:
        stream = Feed(lambda: {"n": 1}).stream()
        comment = b": nothing new\n\n"
        found = [await anext(stream)]
        # on a busy machine the first document takes longer than silence may last
        while len(found) < 2 or found[1] == comment:
            found[1:] = [await anext(stream)]
        found += [await anext(stream) for _ in range(2)]
        await stream.aclose()  # type: ignore[attr-defined]

        assert found[0] == b"retry: 2000\n\n"
        assert b'{"=":{"n":1}}' in found[1]
        # comments, so that nobody on the way closes it
        assert found[2] == found[3] == comment

    run(main)


def test_a_document_that_cannot_be_built_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = itertools.count()

    def build() -> dict[str, Any]:
        if next(calls) == 0:
            raise ValueError("torn")
        return {"n": [1], "over": True}

    async def main() -> None:
        found = [one async for one in documents(Feed(build).stream())]

        assert found == [{"n": [1], "over": True}]

    run(main)
    assert "torn" in caplog.text


def test_closing_sends_a_last_document() -> None:
    async def main() -> None:
        build = Counting()
        one = Feed(build)
        stream = documents(one.stream())
        await anext(stream)
        closing = asyncio.create_task(one.close())
        rest = [found async for found in stream]
        await closing

        assert rest[-1]["n"][-1] == build.built - 1

    run(main)


def test_who_watches_while_it_closes_has_nothing_built_anew() -> None:
    async def main() -> None:
        build = Counting()
        one = Feed(build)
        stream = one.stream()
        await anext(stream)
        await anext(stream)
        closing = asyncio.create_task(one.close())
        while one.at_work:
            await asyncio.sleep(0)
        # the last document is there, and who closes has not come to say so
        built = build.built
        rest = [event async for event in stream]
        await closing

        assert len(rest) == 1
        assert build.built == built
        assert not one.at_work

    run(main)


@pytest.mark.parametrize(("cost_s", "pause_s"), [(0.0, 1.0), (0.09, 1.0), (0.5, 5.0)])
def test_what_is_expensive_is_built_less_often(
    monkeypatch: pytest.MonkeyPatch, cost_s: float, pause_s: float
) -> None:
    monkeypatch.setattr(feed, "PERIOD_S", 1.0)
    monkeypatch.setattr(feed, "SHARE", 0.1)

    assert feed.pause_s(cost_s) == pytest.approx(pause_s)


@given(DOCUMENTS, DOCUMENTS)
def test_what_was_changed_is_what_was_meant(before: Any, after: Any) -> None:
    how = json.loads(json.dumps(change(before, after)))

    assert apply_change(before, how) == after


@given(DOCUMENTS)
def test_what_stays_is_no_change(document: Any) -> None:
    assert change(document, json.loads(json.dumps(document))) is None


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ([1, 2, 3], [1, 2, 3, 4], {"+": [3, [4]]}),
        ([1, 2, 3], [1, 2, 5, 6], {"+": [2, [5, 6]]}),
        ([1, 2, 3], [1], {"+": [1, []]}),
        ({"a": [1], "b": 1}, {"a": [1, 2], "b": 1}, {"~": {"a": {"+": [1, [2]]}}}),
        ([{"x": [1]}, {"x": [2]}], [{"x": [1]}, {"x": [2, 3]}],
         {"~": {"1": {"~": {"x": {"+": [1, [3]]}}}}}),
        ({"a": 1}, {"b": 1}, {"=": {"b": 1}}),
    ],
)  # fmt: skip
def test_only_what_is_new_is_sent(before: Any, after: Any, how: Any) -> None:
    assert change(before, after) == how


def test_of_many_lines_those_that_changed_are_sent() -> None:
    before = [f"<td>line {number}</td>" for number in range(100)]
    after = [*before]
    after[3] = "<td>3</td>"
    after[90] = "<td>90</td>"

    how = change(before, after)

    assert how == {"~": {"3": {"=": "<td>3</td>"}, "90": {"=": "<td>90</td>"}}}
