"""Whatever a scenario raises is one failed iteration, reported with type, message and place."""

from __future__ import annotations

import random
import threading
import uuid

import msgpack
import osprofiler.profiler
import pytest

from helpers.engines import Books, batch, body, closed, until
from osbench.common.plugin.scenario import Scenario
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.body import Body
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import EngineSetup
from osbench.worker.engine.failures import (
    DISTINCT_LIMIT,
    MESSAGE_LIMIT,
    Failures,
    message_of,
    reported_error,
)
from osbench.worker.tracing.profiling import Tracer

ITERATION, OUTCOME, FAILURE, EXTRA = 0, 1, 6, 8


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Leaving(Exception):
    def __str__(self):
        raise SystemExit(3)


class Odd(Exception):
    def __str__(self):
        return 5  # noqa: PLE0307 - so that forming the message fails


def run(work, count=1, **more):
    """Rows and failures of some iterations of `work` on one user."""
    with closed(work, **more) as engine:
        engine.add(batch((1, count + 1)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == count)
    return engine.rows, engine.body.failures.fresh()


def throwing(error):
    def work(scenario):
        raise error

    return work


def test_a_password_in_an_address_is_in_no_failure():
    _, ((_, _, message, shown),) = run(throwing(OSError("no answer of http://u:hunter2@host/")))

    assert message == "no answer of http://***@host/"
    assert "hunter2" not in shown
    assert "OSError: no answer of http://***@host/" in shown


@pytest.mark.parametrize(
    "text",
    [
        "password=planted",
        "{'X-Auth-Token': 'planted'}",
        # the limit of a message is within the secret
        f"{'x' * (MESSAGE_LIMIT - 20)} token=planted{'y' * 100}",
        # and the place where a long traceback is cut
        f"{'x' * 30_000} token=planted{'y' * 3990}",
        f"{'x' * 500_000} token=planted {'y' * 500_000}",
    ],
)
def test_a_secret_of_any_kind_is_in_no_failure(text):
    def work(scenario):
        try:
            raise KeyError(text)
        except KeyError as error:
            raise RuntimeError(text) from error

    _, ((_, _, message, shown),) = run(work)

    assert "planted" not in message + shown
    assert "yyyy" not in message


def test_failures_that_differ_in_short_ids_are_one():
    failures = Failures()
    chance = random.Random(0)
    ids = ["abcdef", "123456", *(f"{chance.randrange(16**6):06x}" for _ in range(300))]

    for id_ in ids:
        message = f"order {uuid.UUID(int=chance.getrandbits(128))} of user_{id_} was refused"
        failures.number(RuntimeError(message), message)

    assert len(failures.fresh()) == 1


def test_what_hides_the_secrets_of_a_run_is_asked_before_a_text_is_cut():
    failures = Failures()
    failures.masked = lambda text: text.replace("planted", "***")
    error = RuntimeError(f"{'x' * (MESSAGE_LIMIT - 4)}planted")

    failures.number(error, str(error))

    ((_, _, message, shown),) = failures.fresh()
    assert message == f"{'x' * (MESSAGE_LIMIT - 4)}***"
    assert "planted" not in shown


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("wrong"), "wrong"),
        (SystemExit(2), "2"),
        (KeyboardInterrupt(), ""),
        (GeneratorExit(), ""),
        (StopIteration(), ""),
        (MemoryError(), ""),
        (
            ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
            "several: KeyError: 'two'; ValueError: one",
        ),
        (
            ExceptionGroup("all", [ExceptionGroup("some", [OSError("a")]), *[OSError("b")] * 2]),
            "all: OSError: a; OSError: b (x 2)",
        ),
        (Mute(), "(its message cannot be formed: RuntimeError)"),
        (Leaving(), "(its message cannot be formed: SystemExit)"),
        (Odd(), "(its message cannot be formed: TypeError)"),
    ],
)
def test_anything_raised_is_a_failed_iteration(error, message):
    rows, (failure,) = run(throwing(error), count=2)

    assert [row[OUTCOME] for row in rows] == [Outcome.FAILED] * 2
    number, etype, shown, text = failure
    assert [row[FAILURE] for row in rows] == [number] * 2
    assert (etype, shown) == (type(error).__name__, message)
    assert "raise error" in text


def test_a_group_of_one_is_its_member():
    alone = ExceptionGroup("tasks", [ExceptionGroup("more", [ValueError("no lamp")])])

    _, ((_, etype, message, shown),) = run(throwing(alone), count=2)

    assert (etype, message) == ("ValueError", "no lamp")
    assert shown.strip() == "ValueError: no lamp"


def test_a_traceback_starts_in_the_scenario():
    def deep(scenario):
        raise ValueError("x")

    _, (failure,) = run(deep)

    assert "in deep" in failure[3]
    assert "engine.py" not in failure[3]
    assert "body.py" not in failure[3]


def test_a_constructor_that_raises_is_a_failed_iteration_without_frames_of_ours():
    class Broken(Scenario):
        def __init__(self, context):
            raise ValueError("no instance")

        def run(self):
            pass

    made = Body(
        cls=Broken, function=Broken.run, arguments=lambda iteration: {}, context={"run": "r"}
    )
    engine = ClosedEngine(EngineSetup(body=made, t0_ns=0, request_work=lambda: None))
    engine.add(batch((1, 3)))
    engine.set_user_limit(1)
    until(lambda: len(engine.rows) == 2)
    engine.close()

    (failure,) = made.failures.fresh()
    assert failure[1:3] == ["ValueError", "no instance"]
    assert "in __init__" in failure[3]
    assert "body.py" not in failure[3]


def test_arguments_that_do_not_fit_are_reported():
    made = body(lambda scenario: None)
    wrong = Body(
        cls=made.cls,
        function=made.function,
        arguments=lambda iteration: {"unknown": 1},
        context=made.context,
    )
    engine = ClosedEngine(EngineSetup(body=wrong, t0_ns=0, request_work=lambda: None))
    engine.add(batch((1, 2)))
    engine.set_user_limit(1)
    until(lambda: engine.rows)
    engine.close()

    (failure,) = wrong.failures.fresh()
    assert failure[1] == "TypeError"
    assert "unexpected keyword argument 'unknown'" in failure[2]


def test_causes_are_reported():
    def work(scenario):
        try:
            {}["key"]
        except KeyError as error:
            raise ValueError("wrong") from error

    _, (failure,) = run(work)

    assert "KeyError: 'key'" in failure[3]
    assert "engine.py" not in failure[3]


def test_output_that_cannot_be_stored_is_a_failed_iteration():
    def work(scenario):
        data = []
        data.append(data)
        scenario.add_output(complete={"title": "t", "chart_plugin": "P", "data": data})

    rows, (failure,) = run(work)

    assert rows[0][OUTCOME] == Outcome.FAILED
    assert failure[1] == "TypeError"


#: Messages of even iterations.
EVEN = {0: "fourth", 2: "second"}


def in_letters(number: int) -> str:
    """A number as a word without digits."""
    return str(number).translate(str.maketrans("0123456789", "abcdefghij")) + "z"


def test_equal_failures_share_a_number_and_others_do_not():
    def work(scenario):
        iteration = scenario.context["iteration"]
        if iteration % 2:
            raise ValueError("odd")
        raise ValueError(EVEN[iteration % 4])

    rows, failures = run(work, count=40)

    assert sorted(failure[2] for failure in failures) == ["fourth", "odd", "second"]
    by_number = {failure[0]: failure[2] for failure in failures}
    for row in rows:
        expected = "odd" if row[ITERATION] % 2 else EVEN[row[ITERATION] % 4]
        assert by_number[row[FAILURE]] == expected


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ("item {} is not there", 1),
        ("user 3f2504e0-4f89-11d3-9a0c-0305e82c33{:02} is gone", 1),
        ("GET /item answered {}, expected 200", 20),
        ("[Errno {}] refused", 20),
    ],
)
def test_failures_that_differ_in_numbers_and_ids_alone_share_a_number(message, kinds):
    def work(scenario):
        raise ValueError(message.format(scenario.context["iteration"]))

    _, failures = run(work, count=20)

    assert len(failures) == kinds


def test_the_same_message_from_two_places_is_two_failures():
    def work(scenario):
        if scenario.context["iteration"] == 1:
            raise ValueError("x")
        raise ValueError("x")

    _, failures = run(work, count=2)

    assert len(failures) == 2


def test_failures_beyond_the_limit_share_one_entry_and_are_counted():
    def work(scenario):
        raise ValueError(f"request {in_letters(scenario.context['iteration'])}")

    with closed(work) as engine:
        engine.add(batch((1, DISTINCT_LIMIT + 101)))
        engine.set_user_limit(4)
        until(lambda: len(engine.rows) == DISTINCT_LIMIT + 100)

    failures = engine.body.failures.fresh()
    numbers = [failure[0] for failure in failures]
    assert numbers == list(range(1, DISTINCT_LIMIT + 2))
    assert failures[-1][1:3] == ["(other)", "more than 1,000 kinds"]
    assert sum(row[FAILURE] == DISTINCT_LIMIT + 1 for row in engine.rows) == 100
    assert engine.body.failures.cut == 100


def test_long_messages_and_tracebacks_are_cut_and_counted():
    def down(depth):
        # two lines in turn: equal ones are shown as repeated
        if depth % 2:
            down(depth - 1)
        if depth:
            down(depth // 2 * 2 - 1)
        raise ValueError("m" * 5000)

    with closed(lambda scenario: down(200)) as engine:
        engine.add(batch((1, 4)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 3)

    (failure,) = engine.body.failures.fresh()
    assert failure[2] == "m" * 1000
    assert len(failure[3]) == 8000
    assert engine.body.failures.cut == 1


def test_text_that_is_not_utf8_can_be_shipped():
    _, (failure,) = run(throwing(FileNotFoundError("caf\udce9")))

    assert msgpack.unpackb(msgpack.packb(failure)) == failure
    assert failure[2] == "caf\\udce9"


def test_threads_that_fail_alike_at_once_share_a_number():
    failures, gate = Failures(), threading.Barrier(8)
    found = []

    def fail():
        gate.wait()
        for n in range(200):
            try:
                raise ValueError("abcde"[n % 5])
            except ValueError as error:
                found.append((n % 5, failures.number(error, message_of(error))))

    threads = [threading.Thread(target=fail) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(failures.fresh()) == len(set(found)) == 5


def test_a_traced_iteration_whose_error_has_no_message_is_still_accounted_for():
    tracer = Tracer("key", "r", 1.0, None, 7)
    rows, (failure,) = run(throwing(Mute()), count=2, tracer=tracer)

    assert [row[OUTCOME] for row in rows] == [Outcome.FAILED] * 2
    traces = {row[EXTRA][0] for row in rows}
    assert len(traces) == 2
    assert all(len(trace) == 16 for trace in traces)
    assert failure[1] == "Mute"


def test_an_exception_object_that_is_raised_again_and_again_is_one_failure():
    _, failures = run(throwing(ValueError("one object")), count=50)

    assert len(failures) == 1


def test_a_profiler_that_a_scenario_left_behind_is_gone_in_the_next_iteration():
    seen = []

    def work(scenario):
        seen.append(osprofiler.profiler.get())
        osprofiler.profiler.init("mine")

    # nothing is sampled
    rows, _ = run(work, count=3, tracer=Tracer("key", "r", 0.0, None, 7))

    assert seen == [None] * 3
    assert [row[EXTRA] for row in rows] == [None] * 3


def test_a_failing_load_loses_nothing_on_many_threads():
    def work(scenario):
        if scenario.context["iteration"] % 3:
            raise RuntimeError("no")

    with closed(work) as engine:
        books = Books(engine)
        engine.add(batch((1, 6001)))
        engine.set_user_limit(16)
        until(lambda: books.complete(range(1, 6001)))

    assert set(books.settled().values()) == {1}
    assert sum(row[OUTCOME] == Outcome.FAILED for row in engine.rows) == 4000


def raised(error: BaseException, cause: BaseException | None) -> BaseException:
    """An exception that was raised `from` another."""
    error.__cause__ = cause
    return error


def test_members_of_nested_groups_are_told_with_what_they_were_raised_from():
    inner = ExceptionGroup("inner", [raised(ValueError("no id"), KeyError("id")), OSError("gone")])
    group = ExceptionGroup("outer", [inner, TimeoutError("late")])

    error, message = reported_error(group)

    assert error is group
    assert message == (
        "outer: OSError: gone; TimeoutError: late; ValueError: no id (from KeyError: 'id')"
    )


def test_the_same_members_in_another_order_are_the_same_failure():
    members = [ValueError("a"), OSError("b")]

    first, second = (
        reported_error(ExceptionGroup("g", order))[1] for order in (members, members[::-1])
    )

    assert first == second


def test_an_exception_that_a_group_caused_says_what_the_group_is():
    group = ExceptionGroup("unhandled errors", [OSError("a"), raised(OSError("b"), KeyError("k"))])
    error = raised(RuntimeError("boot failed"), group)

    assert reported_error(error) == (
        error,
        "boot failed (from ExceptionGroup: unhandled errors: OSError: a; "
        "OSError: b (from KeyError: 'k'))",
    )


def test_a_group_of_one_that_has_a_cause_of_its_own_keeps_it():
    group = raised(ExceptionGroup("g", [ValueError("bad")]), KeyError("k"))
    outer = ExceptionGroup("outer", [group, OSError("gone")])

    assert reported_error(group) == (group, "g: ValueError: bad (from KeyError: 'k')")
    assert reported_error(outer)[1] == (
        "outer: ExceptionGroup: g: ValueError: bad (from KeyError: 'k'); OSError: gone"
    )


def test_an_exception_without_a_group_says_what_it_said():
    error = raised(ConnectionError("GET /: refused"), OSError("refused"))

    assert reported_error(error) == (error, "GET /: refused")


def test_of_many_long_members_each_is_named():
    group = ExceptionGroup("g", [ValueError(f"{letter}" * 900) for letter in "abcdefgh"])

    _, message = reported_error(group)

    assert len(message) <= MESSAGE_LIMIT
    assert all(f"ValueError: {letter * 20}" in message for letter in "abcdefgh")


def test_exceptions_that_caused_each_other_have_an_end():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first

    _, message = reported_error(ExceptionGroup("g", [first, OSError("c")]))

    assert message == "g: OSError: c; ValueError: a (from ValueError: b)"
