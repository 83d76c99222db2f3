"""Values that a scenario hides from logs."""

from __future__ import annotations

import asyncio
import contextvars

from osbench.common.secrets.hiding import HIDDEN, hide, without


def test_hidden_values_are_masked_longest_first():
    def hidden() -> str:
        HIDDEN.set(lambda text: ["abc", "abcdef"])
        return hide("abcdef abc ab")

    assert contextvars.copy_context().run(hidden) == "*** *** ab"
    assert hide("abcdef") == "abcdef"


def test_an_empty_value_hides_nothing():
    assert without(["", "abc"], "abc d") == "*** d"


def test_hidden_values_are_masked_as_they_are_written():
    value = 'a"b&c d'

    text = r'{"x": "a\"b&c d"} <a b="a&quot;b&amp;c d"> ?t=a%22b%26c+d a"b&c d'

    assert without([value], text) == '{"x": "***"} <a b="***"> ?t=*** ***'


def test_each_task_hides_its_own():
    async def user(value: str) -> str:
        HIDDEN.set(lambda text: [value])
        await asyncio.sleep(0)
        return hide("one-1 two-2")

    async def both() -> list[str]:
        return await asyncio.gather(user("one-1"), user("two-2"))

    assert asyncio.run(both()) == ["*** two-2", "one-1 ***"]
