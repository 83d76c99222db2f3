"""Documents are read strictly, and faults are placed."""

import pytest

from osbench.coordinator.task.taskfile.document import parse_document


def faults(text):
    _, problems = parse_document(text)
    assert problems
    return {problem.place: problem.message for problem in problems}


def test_yaml_and_json_are_the_same():
    assert parse_document('{"a": [1, 2.5, null, true, "x"]}') == parse_document(
        "a: [1, 2.5, ~, true, x]"
    )


def test_anchors_and_merges_are_no_repetition():
    value, problems = parse_document("a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: [*a, *a]\n")

    assert problems == []
    assert value == {"a": {"x": 1}, "b": {"x": 2}, "c": [{"x": 1}, {"x": 1}]}


def test_a_key_on_is_a_text_and_other_truths_are_none():
    assert parse_document("{on: 401, Off: {yes: no}}") == ({"on": 401, "Off": {"yes": False}}, [])
    assert "keys must be strings, got true" in " ".join(faults("{true: 1}").values())


def test_bad_yaml_has_line_and_column():
    problems = faults("a: 1\nb: [1, 2\nc: 3\n")

    assert list(problems) == ["line 3, column 2"]


def test_every_repeated_key_is_reported_with_both_lines():
    problems = faults("a: 1\nb: {x: 1, x: 2}\na: 2\n")

    assert problems == {
        "line 2, column 11": 'duplicate key "x", first in line 2',
        "line 3, column 1": 'duplicate key "a", first in line 1',
    }


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("a: {b: [1, 2024-01-31]}", "a.b[1]", "date"),
        ("a: .inf", "a", "finite"),
        ("a: {1: x}", "a", "keys must be strings, got 1"),
        ("a: !!binary aGk=", "a", "bytes"),
        ("a: !!set {x, y}", "a", "set"),
    ],
)
def test_what_json_cannot_hold_is_refused(text, place, word):
    problems = faults(text)

    assert list(problems) == [place]
    assert word in problems[place]


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: !!python/object:os.system {}",
        "a: *unknown",
        "a: 1\n---\nb: 2\n",
        "a: \x00",
        "\ta: 1",
        "? [a]\n: 1",
        "? {a: 1}\n: 1",
        "a: 2024-13-41",
        "[" * 5000,
    ],
)
def test_strange_documents_are_problems_and_never_tracebacks(text):
    assert faults(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 010", "line 1, column 4: YAML reads 010 as octal, as 8;"),
        ("a: [1:30]", "line 1, column 5: YAML reads 1:30 in base 60, as 90;"),
        ("a: -1:30.5", "in base 60, as -90.5;"),
    ],
)
def test_numbers_that_yaml_reads_otherwise_are_warned_of(caplog, text, said):
    value, problems = parse_document(text)

    assert (type(value), problems) == (dict, [])
    assert said in caplog.text


@pytest.mark.parametrize(
    "text", ["a: 0", "a: 10", "a: 1.5", 'a: "010"', "a: 12:99", "a: 2020-01-01x"]
)
def test_other_numbers_are_not(caplog, text):
    parse_document(text)

    assert not caplog.text


def test_a_document_that_is_too_long_is_refused_by_its_length() -> None:
    found = faults("a: 1\n" + "# more\n" * 600_000)

    assert found == {"": "it is longer than 4,194,304 characters; shorten or split it"}
