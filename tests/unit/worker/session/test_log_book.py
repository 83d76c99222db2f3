"""What a worker process keeps of what it prints and logs: bounded, masked, with its iteration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.engines import COROUTINES, THREADS, S, batch, body, closed, until
from osbench.common.plugin.scenario import Scenario
from osbench.common.secrets.hiding import HIDDEN
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import NEVER, EngineSetup
from osbench.worker.session import log_book
from osbench.worker.session.log_book import BURST_CHARS, ENTRY_CHARS, TOTAL_CHARS, LogBook


@pytest.fixture
def book() -> LogBook:
    found = LogBook()
    found.begin("r")
    return found


def texts(book: LogBook) -> list[str]:
    return [entry[4] for entry in book.take()[0]]


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_an_entry_names_workload_and_iteration(book: LogBook, users: str) -> None:
    def deeper() -> None:
        book.add("stdout", "from within")

    async def work(scenario: Scenario) -> None:
        deeper()

    with closed(work, users=users) as engine:
        engine.body.context["workload"] = 2
        engine.add(batch((7, 9)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)
    book.add("stderr", "outside")

    entries, cut = book.take()
    assert [entry[1:] for entry in entries] == [
        ["stdout", 2, 7, "from within"],
        ["stdout", 2, 8, "from within"],
        ["stderr", -1, 0, "outside"],
    ]
    assert cut == 0
    assert book.take() == ([], 0)


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_a_line_without_an_end_is_an_entry_of_its_iteration(book: LogBook, users: str) -> None:
    async def work(scenario: Scenario) -> None:
        HIDDEN.set(lambda _: ["swordfish"])
        book.write("stdout", "done ")
        book.write("stdout", "with swordfish")

    with closed(work, users=users) as engine:
        engine.body.context["workload"] = 2
        engine.add(batch((7, 9)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)

    entries, _ = book.take(final=True)
    assert [entry[1:] for entry in entries] == [
        ["stdout", 2, 7, "done with ***"],
        ["stdout", 2, 8, "done with ***"],
    ]


def test_a_line_without_an_end_is_of_one_run(book: LogBook) -> None:
    book.write("stdout", "of the last run")
    book.begin("r2")
    book.write("stdout", "whole\n")

    assert texts(book) == ["whole"]


def test_a_thread_that_an_earlier_run_left_behind_writes_into_no_other_run(book: LogBook) -> None:
    with closed(lambda _: book.add("stdout", "old")) as engine:
        engine.body.context["run"] = "earlier"
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 1)

    assert texts(book) == []


def test_secrets_of_the_workload_and_of_the_iteration_are_masked(book: LogBook) -> None:
    def work(scenario: Scenario, phrase: str, user_password: str) -> None:
        book.add("stdout", f"it is {user_password} and planted-1, not {phrase}")

    made = replace(
        body(lambda _: None),
        function=work,
        arguments=lambda iteration: {"phrase": "kept", "user_password": "planted-row"},
    )
    book.hide(["planted-1", "planted-1-and-more"])
    engine = ClosedEngine(EngineSetup(body=made, t0_ns=0, request_work=lambda: None))
    engine.set_lease(NEVER)
    engine.add(batch((1, 2)))
    engine.set_user_limit(1)
    until(lambda: len(engine.rows) == 1)
    engine.close()
    book.add("INFO", "planted-1-and-more, token=abc")

    assert texts(book) == ["it is *** and ***, not kept", "***, token=***"]


def test_short_secrets_are_masked_as_words_only(book: LogBook) -> None:
    book.hide(["demo", "a-b"])

    book.add("stdout", "demo, 'demo' and demo: demonstration of demo-1 and my_demo; a-b, a-bc")

    assert texts(book) == ["***, '***' and ***: demonstration of demo-1 and my_demo; ***, a-bc"]


def test_a_text_is_masked_without_being_kept(book: LogBook) -> None:
    book.hide(["planted-1"])

    assert book.masked("it is planted-1, token=abc") == "it is ***, token=***"
    assert texts(book) == []


def test_the_secrets_of_thousands_of_users_are_masked(book: LogBook) -> None:
    book.hide(["planted-of-the-task"])
    book.hide(f"planted-{number}" for number in range(5000))

    book.add("stdout", 'planted-0 user="planted-4999", (planted-17) of xplanted-of-the-task')

    assert texts(book) == ['*** user="***", (***) of x***']


def test_what_is_too_much_is_counted(book: LogBook, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(log_book.time, "monotonic", lambda: now_s)
    book.begin("r")
    line = "x" * ENTRY_CHARS
    fits = BURST_CHARS // ENTRY_CHARS

    for _ in range(fits + 3):
        book.add("stdout", line)
    entries, cut = book.take()
    now_s += 1.0
    for _ in range(2):
        book.add("stdout", line)
    later, later_cut = book.take()

    assert (len(entries), cut) == (fits, 3)
    assert (len(later), later_cut) == (1, 1)


def test_there_is_an_end_to_it(book: LogBook, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(log_book.time, "monotonic", lambda: now_s)
    book.begin("r")
    kept = 0
    for _ in range(2 * TOTAL_CHARS // ENTRY_CHARS):
        now_s += S
        book.add("stdout", "x" * ENTRY_CHARS)
        kept += sum(map(len, texts(book)))

    assert TOTAL_CHARS - ENTRY_CHARS < kept <= TOTAL_CHARS


def test_nothing_is_kept_without_a_run() -> None:
    book = LogBook()
    book.add("stdout", "before")
    book.begin("r")
    book.add("stdout", "left")
    book.end()
    book.add("stdout", "after")
    book.begin("s")

    assert book.take() == ([], 0)
