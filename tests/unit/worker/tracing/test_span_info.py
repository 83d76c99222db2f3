import datetime
import json
import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.worker.tracing.span_info import failure_text, info_text


class Hostile:
    def __repr__(self):
        raise RuntimeError("not to be looked at")


class Text(str):
    """A string, in the way of oslo.i18n's messages."""


def read(text):
    """The info as a reader of the trace finds it."""
    return json.loads(f'{{"host": "h"{text}}}')


def circle():
    inside = {}
    inside["again"] = [inside]
    return inside


@pytest.mark.parametrize(
    "value",
    [
        Hostile(),
        [Hostile()],
        object(),
        b"\xff\xfe",
        float("nan"),
        float("inf"),
        10**5000,
        "\ud800 alone",
        "x" * 10**6,
        {1: "one", (2, 3): {4}},
        {Hostile(): Hostile()},
        circle(),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        [[0] * 1000] * 1000,
        Text("translated"),
        lambda: None,
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_becomes_short_json(value):
    text = info_text({"given": value, "after": 1})

    assert "given" in read(text) or "cut" in read(text)
    assert len(text) <= 16_001
    assert text.isascii()


def test_plain_values_are_kept_as_they_are():
    info = {"db": {"statement": "SELECT 1"}, "n": 3, "ok": True, "none": None, "f": 0.5, "l": [1]}

    assert read(info_text(info)) == {"host": "h", **info}


def test_what_was_passed_in_is_left_out():
    info = {
        "function": {"name": "boot", "args": "('hunter2',)", "kwargs": "{}", "result": "7"},
        "db": {"statement": "INSERT", "params": {"password": "hunter2"}},
    }

    said = read(info_text(info))

    assert said["function"] == {"name": "boot", "result": "7"}
    assert said["db"] == {"statement": "INSERT"}


def test_the_host_is_not_for_the_scenario_to_say():
    assert info_text({"host": "elsewhere"}) == ""


def test_the_given_dict_is_not_touched():
    info = {"function": {"name": "f", "args": "()"}}

    info_text(info)

    assert info == {"function": {"name": "f", "args": "()"}}


def test_a_mapping_that_raises_is_named():
    class Broken(OrderedDict):
        def keys(self):
            raise LookupError

        def __iter__(self):
            raise LookupError

    assert read(info_text(Broken(a=1)))["unreadable"] == "LookupError"


def test_a_dict_that_other_threads_change_is_read_all_the_same():
    shared = {"function": {"name": "f"}}
    stop = threading.Event()

    def change():
        number = 0
        while not stop.is_set():
            number += 1
            shared["function"][f"k{number % 50}"] = number
            shared["function"].pop(f"k{(number + 25) % 50}", None)

    thread = threading.Thread(target=change)
    thread.start()
    texts = {info_text(shared)[:22] for _ in range(3000)}
    stop.set()
    thread.join()

    assert texts == {',"function":{"name":"f'}


def test_secrets_are_in_no_info():
    info = {"X-Auth-Token": "planted", "key_name": "kept", "tokens": 5}

    assert json.loads("{" + info_text(info)[1:] + "}") == {**info, "X-Auth-Token": "***"}
    told = failure_text("ValueError", f"{'x' * 990} password=planted")
    assert "planted" not in told


def test_failures_are_cut():
    said = read(failure_text("ValueError", "m" * 10_000))

    assert said["etype"] == "ValueError"
    assert said["message"] == "m" * 1000


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _VALUES, max_size=4))
def test_every_info_is_valid_json(info):
    said = read(info_text(info))

    assert said["host"] == "h"
