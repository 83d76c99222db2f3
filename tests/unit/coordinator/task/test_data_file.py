"""Data files: which rows an iteration gets, what is refused, and how much goes at once."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.errors import TaskError, Untrusted
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Step, Totals
from osbench.common.protocol import data_rows
from osbench.common.protocol.messages import Batch
from osbench.common.values.intervals import Intervals
from osbench.coordinator.load.dispatch.closed_load import blind_sizes
from osbench.coordinator.task import data_file
from osbench.coordinator.task.taskfile import load
from osbench.worker.session.row_feed import RowFeed

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def made(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return data_file.read_data_file(path)


def fed(file, numbers):
    """What a worker's feed gives to the iterations of a batch."""
    intervals = Intervals(numbers)
    batch = Batch(
        run="r",
        incarnation="w",
        session="s",
        workload=0,
        seq=1,
        intervals=list(intervals),
        rows=file.encrypt(intervals),
    )
    feed = RowFeed(file.header, file.key)
    feed.add(batch)
    arguments = feed.over(lambda iteration: {"given": iteration})
    return {number: arguments(number) for number in intervals.members().tolist()}


def test_row_n_feeds_iteration_n(tmp_path):
    file, problems = made(tmp_path, 'user,age:json\nann,31\n\n"bob, jr",[1]\r\neve,null')

    given = fed(file, [(1, 4)])

    assert problems == []
    assert len(file) == 3
    assert given == {
        1: {"given": 1, "user": "ann", "age": 31},
        2: {"given": 2, "user": "bob, jr", "age": [1]},
        3: {"given": 3, "user": "eve", "age": None},
    }
    assert file.arguments == ["user", "age"]
    assert file.first == {"user": "ann", "age": 31}


@given(
    st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5)), max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_any_rows_reach_their_iterations(tmp_path_factory, rows, spans, end, mark):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    text = out.getvalue().encode()
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text if mark else text)
    file, problems = data_file.read_data_file(path)
    spans = [(low, min(low + count, len(rows) + 1)) for low, count in spans if low <= len(rows)]

    given = fed(file, [span for span in spans if span[0] < span[1]])

    assert problems == []
    assert all(
        (arguments["a"], arguments["b"]) == rows[number - 1] for number, arguments in given.items()
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no row found"),
        ("a,b\n", "line 1: no row found"),
        ("a,a\n1,2\n", "the header must name each argument once"),
        ("a,\n1,2\n", "the header must name each argument once"),
        ("a,a:json\n1,2\n", "the header must name each argument once"),
        ("a,b\n1,2\n3\n", "line 3: has 1 cells, the header has 2"),
        ("a:json\n1\nx\n", "line 3: column a is not JSON"),
        ("a:json\nNaN\n", "line 2: column a is not JSON"),
        (b"a\n1\n\xff\n", "line 3: is not text in UTF-8"),
        ('a\n"1\n', "line 2: unexpected end of data"),
        ("a,b,\n1,2,\n", "column 3 has no name (is there a delimiter at the end of the line?)"),
        ("a,,b\n1,2,3\n", "column 2 has no name: the header"),
        ("a;b\n1;2\n3\n", "line 3: has 1 cells, the header has 2"),
        ("a,b\r1,2\r", "line 1: a line ends with CR alone: save the file with line ends LF"),
        (f"a,b\n1,{'x' * 200_000}\n", "line 2: a cell has more than 131,072 characters; is a qu"),
    ],
)
def test_files_that_are_refused(tmp_path, text, problem):
    file, problems = made(tmp_path, text)

    assert file is None
    assert any(problem in one and "rows.csv" in one for one in problems), problems


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_those_that_the_header_has(tmp_path, delimiter):
    text = 'user,pw,more:json\n"bob; jr",x,"[1, 2]"\n\n"a\nb","c,d",1\n'
    cells = csv.reader(io.StringIO(text, newline=""))
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(cells)

    file, problems = made(tmp_path, f"\ufeff{out.getvalue()}")
    same, _ = made(tmp_path, text, "same.csv")

    assert problems == []
    assert list(file.rows()) == list(same.rows())
    assert fed(file, [(2, 3)]) == fed(same, [(2, 3)])


def test_a_file_full_of_faults_is_told_of_in_part(tmp_path):
    _, problems = made(tmp_path, "a,b\n" + "1\n" * 1000)

    assert len(problems) == data_file.MAX_PROBLEMS


def test_a_missing_file_is_named(tmp_path):
    _, (problem,) = data_file.read_data_file(tmp_path / "none.csv")

    assert "none.csv cannot be read" in problem


def test_rows_travel_closed(tmp_path):
    file, _ = made(tmp_path, "password\ncorrect horse\n")

    encrypted = file.encrypt(Intervals([(1, 2)]))

    assert b"horse" not in encrypted
    assert data_rows.decrypt(encrypted, file.key) == "correct horse\n"
    with pytest.raises(Untrusted):
        data_rows.decrypt(encrypted, made(tmp_path, "a\n1\n")[0].key)


def test_rows_that_cannot_be_read_fail_their_iterations(tmp_path):
    file, _ = made(tmp_path, "a\n1\n")
    feed = RowFeed(file.header, file.key)

    feed.add(Batch(run="r", incarnation="w", session="s", workload=0, seq=1, intervals=[(1, 2)]))

    with pytest.raises(KeyError):
        feed.over(lambda iteration: {})(1)


def test_no_iteration_is_planned_beyond_the_last_row(tmp_path):
    file, _ = made(tmp_path, "a\n1\n2\n3\n")

    endless = file.within(Step(stop_s=9.0), Totals(allotted=3, settled=2))
    over = file.within(Step(stop_s=9.0), Totals(allotted=3, settled=3))
    few = file.within(Step(budget=2), Totals(allotted=0, settled=0))
    arrivals = file.within(Step(arrivals=[0.0, 1.0]), Totals(allotted=2, settled=0))

    assert (endless.budget, endless.done, over.done) == (3, False, True)
    assert (few.budget, arrivals.arrivals) == (2, [0.0])


def test_batches_with_rows_stay_small(tmp_path):
    file, _ = made(tmp_path, "a\n" + ("x" * 1023 + "\n") * 5000)

    sizes = blind_sizes(4, 5000, file.batch_limit)

    assert file.batch_limit == 1024
    assert max(sizes) <= 1024
    assert sum(sizes) == 5000


# in task files


@pytest.fixture
def refusal(tmp_path):
    def refused(args, rows, runner, name="Dummy.dummy"):
        (tmp_path / "rows.csv").write_text(rows)
        path = tmp_path / "task.yaml"
        subtask = (
            f"{{title: s, scenario: {{{name}: {args}}}, args_from: rows.csv, runner: {runner}}}"
        )
        path.write_text(f"{{version: 2, title: t, subtasks: [{subtask}]}}")
        try:
            load(str(path), args={}, plugins=Plugins())
        except TaskError as error:
            return {problem.place: problem.message for problem in error.problems}
        return {}

    return refused


def test_a_plan_needs_a_row_for_each_iteration(refusal):
    rows = "sleep:json\n1\n2\n"

    assert refusal("{}", rows, "{constant: {times: 2}}") == {}
    assert refusal("{}", rows, "{constant_for_duration: {duration: 60}}") == {}
    assert refusal("{}", rows, "{rps: {times: 3, rps: 1}}") == {
        "subtasks[0].args_from": "rows.csv has 2 rows and the runner plans 3 iterations:"
        " give more rows, or plan fewer"
    }
    assert "plans 10 iterations" in str(
        refusal("{}", rows, "{stages: {start: 1, stages: [{duration: 10, target: 1}]}}")
    )


def test_columns_have_to_fit_the_scenario(refusal):
    runner = "{constant: {times: 1}}"

    assert "must be float" in str(refusal("{}", "sleep\n1\n", runner))
    assert "slip" in str(refusal("{}", "slip:json\n1\n", runner, "Dummy.dummy_exception"))
    assert "sleep is both a column and an argument" in str(
        refusal("{sleep: 1}", "sleep:json\n1\n", runner)
    )
